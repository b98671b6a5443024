"""A worker on the SDK for Python. Whoever is on the bus tells it what to do.

python worker.py <url> <name>
"""

import sys
import threading
import warnings

from iii import InitOptions, TriggerAction, register_worker
from iii.trigger import TriggerHandler
from iii_helpers.observability import ReconnectionConfig

warnings.simplefilter("ignore", DeprecationWarning)

url, name = sys.argv[1:3]
reconnection = ReconnectionConfig(initial_delay_ms=50, max_delay_ms=200)
worker = register_worker(url, InitOptions(worker_name=name, reconnection_config=reconnection))

seen = []
bound = {}


class Tick(TriggerHandler):
    async def register_trigger(self, trigger):
        if (trigger.config or {}).get("refuse"):
            raise ValueError("refused as asked")
        bound[trigger.id] = trigger.function_id

    async def unregister_trigger(self, trigger):
        bound.pop(trigger.id, None)


async def echo(given):
    return {"by": name, "input": given}


async def fail(_given):
    raise ValueError(f"{name} fails as asked")


async def see(given):
    seen.append(given)


async def all_seen(_given):
    return seen


async def call(given):
    """Calls something, and answers with what became of it."""
    try:
        request = {"function_id": given["function_id"], "payload": given.get("payload")}
        return {"result": await worker.trigger_async(request)}
    except Exception as error:
        return {"error": {"code": getattr(error, "code", None), "message": str(error)}}


async def bind(given):
    worker.register_trigger({key: given[key] for key in ("type", "function_id", "config")})


async def tick(payload):
    for function_id in list(bound.values()):
        request = {"function_id": function_id, "payload": payload, "action": TriggerAction.Void()}
        await worker.trigger_async(request)


worker.register_trigger_type({"id": f"{name}::tick", "description": "Ticks when it is told to."}, Tick())
functions = {"echo": echo, "fail": fail, "see": see, "seen": all_seen, "call": call, "bind": bind, "tick": tick}
for function_name, handler in functions.items():
    worker.register_function(f"{name}::{function_name}", handler)

threading.Event().wait()

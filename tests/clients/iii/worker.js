// A worker on the SDK for Node.js. Whoever is on the bus tells it what to do.
//
// node worker.js <url> <name>

import { registerWorker, TriggerAction } from 'iii-sdk'

const [url, name] = process.argv.slice(2)
const worker = registerWorker(url, {
  workerName: name,
  reconnectionConfig: { initialDelayMs: 50, maxDelayMs: 200 },
})

const seen = []
const bound = new Map()

worker.registerTriggerType(
  { id: `${name}::tick`, description: 'Ticks when it is told to.' },
  {
    async registerTrigger({ id, function_id, config }) {
      if (config?.refuse) throw new Error('refused as asked')
      bound.set(id, function_id)
    },
    async unregisterTrigger({ id }) {
      bound.delete(id)
    },
  },
)

const functions = {
  echo: async (input) => ({ by: name, input }),
  fail: async () => {
    throw new Error(`${name} fails as asked`)
  },
  see: async (input) => {
    seen.push(input)
  },
  seen: async () => seen,
  // Calls something, and answers with what became of it.
  call: async ({ function_id, payload }) => {
    try {
      return { result: await worker.trigger({ function_id, payload }) }
    } catch (error) {
      return { error: { code: error.code, message: error.message } }
    }
  },
  bind: async ({ type, function_id, config }) => {
    worker.registerTrigger({ type, function_id, config })
  },
  tick: async (payload) => {
    for (const function_id of bound.values()) {
      await worker.trigger({ function_id, payload, action: TriggerAction.Void() })
    }
  },
}

for (const [function_name, handler] of Object.entries(functions)) {
  worker.registerFunction(`${name}::${function_name}`, handler)
}

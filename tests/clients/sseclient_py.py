"""Reads a stream with sseclient-py and prints what it saw, one event a line, until it sees the entry `e_end`."""

import json
import sys
import time

import requests
import sseclient

last = None
while True:
    try:
        headers = {"Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = last
        response = requests.get(sys.argv[1], stream=True, headers=headers, timeout=60)
        response.raise_for_status()
        for event in sseclient.SSEClient(response).events():
            last = event.id
            entry = json.loads(event.data)["entry_id"]
            print(event.id, entry, flush=True)
            if entry == "e_end":
                sys.exit(0)
    except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
        pass
    time.sleep(0.2)

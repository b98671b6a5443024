// Reads a stream with npm's `eventsource` and prints what it saw, one event a line, until it sees the entry `e_end`.
import { EventSource } from "eventsource";

const source = new EventSource(process.argv[2]);
source.addEventListener("session::message-added", (event) => {
  const entry = JSON.parse(event.data).entry_id;
  console.log(`${event.lastEventId} ${entry}`);
  if (entry === "e_end") source.close();
});
source.onerror = (error) => {
  if (error.code) {
    console.error(`refused with ${error.code}`);
    process.exit(1);
  }
};

// Runs the client that the documentation shows until the session's status changes, and prints the messages that it has then.
import { readFileSync } from "node:fs";
import { EventSource as Npm } from "eventsource";

const [documentation, server] = process.argv.slice(2);
const code = readFileSync(documentation, "utf8").match(/```js\n([\s\S]*?)```/)[1];
class EventSource extends Npm {
  constructor(path) {
    super(new URL(path, server));
  }
}
const [messages, source] = new Function("EventSource", `${code}\nreturn [messages, source];`)(EventSource);
source.addEventListener("banyan::snapshot-end", () => console.log("began"));
source.addEventListener("session::status-changed", () => {
  console.log(JSON.stringify(Object.fromEntries(messages)));
  source.close();
});

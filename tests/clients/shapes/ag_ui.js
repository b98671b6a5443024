// AG-UI's own client checks events against its schemas and its rules of order, and puts messages together of them. With a number,
// the connection is cut after so many events, again and again, and taken up where it was; to the client it is one stream. It says
// `ready` after the first run, and prints the messages when a run ends whose last text is the one given.
import { defaultApplyEvents, enforceEvents, verifyEvents } from "@ag-ui/client";
import { EventSchema } from "@ag-ui/core/schemas";
import { Subject, share } from "rxjs";

const [url, last, every] = [process.argv[2], process.argv[3], Number(process.argv[4] ?? Infinity)];
const fail = (error) => {
  console.error(error);
  process.exit(1);
};
console.warn = (...words) => fail(new Error(words.join(" ")));

const source = new Subject();
const checked = source.pipe(enforceEvents(), verifyEvents(false), share());
let messages = [];
const input = { threadId: "t", runId: "r", messages: [], tools: [], context: [], state: {}, forwardedProps: {} };
defaultApplyEvents(input, checked, { messages: [], state: {} }, []).subscribe({
  next: (mutation) => (messages = mutation.messages ?? messages),
  error: fail,
});
const types = [];
checked.subscribe({ next: ({ type }) => types.push(type), error: fail });

let ready = false;
const settled = () => new Promise((resolve) => setImmediate(resolve));
const isLast = (message) => message?.role === "assistant" && message.content === last;

let id;

/** Hands frames over one by one, until the connection ends or is cut. */
async function listen() {
  const cut = new AbortController();
  const response = await fetch(url, { signal: cut.signal, headers: id ? { "Last-Event-ID": id } : {} });
  if (!response.ok) fail(new Error(await response.text()));
  let text = "", heard = 0;
  const decoder = new TextDecoder();
  for await (const piece of response.body) {
    text += decoder.decode(piece, { stream: true });
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      for (const line of text.slice(0, end).split("\n")) {
        if (line.startsWith("id: ")) id = line.slice(4);
        if (!line.startsWith("data: ")) continue;
        const event = JSON.parse(line.slice(6));
        EventSchema.parse(event);
        source.next(event);
        await settled();
        if (event.type === "RUN_FINISHED" && !ready) {
          ready = true;
          console.log("ready");
        }
        if (["RUN_FINISHED", "RUN_ERROR"].includes(event.type) && messages.some(isLast)) {
          console.log(JSON.stringify({ messages, types }));
          process.exit(0);
        }
        heard += 1;
        if (heard === every) {
          cut.abort();
          return;
        }
      }
    }
  }
}

for (;;) await listen().catch((error) => error.name === "AbortError" || fail(error));

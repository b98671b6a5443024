// The AI SDK validates what the server says, and makes a model's messages of it. What it validated is printed.
import { convertToModelMessages, validateUIMessages } from "ai";

const messages = await (await fetch(process.argv[2])).json();
const valid = await validateUIMessages({ messages });
// Addresses of attachments are relative to the server; a model needs whole ones.
const whole = (part) => (part.type === "file" ? { ...part, url: new URL(part.url, process.argv[2]).href } : part);
const said = valid.map(({ id, parts, ...message }) => ({ ...message, parts: parts.map(whole) }));
const forModel = await convertToModelMessages(said, { ignoreIncompleteToolCalls: true });
console.log(JSON.stringify({ valid, roles: forModel.map(({ role }) => role) }));

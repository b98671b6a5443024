// The AI SDK validates what the server says, and makes a model's messages of it. What it validated is printed.
import { convertToModelMessages, validateUIMessages } from "ai";

const messages = await (await fetch(process.argv[2])).json();
const valid = await validateUIMessages({ messages });
const forModel = await convertToModelMessages(valid.map(({ id, ...message }) => message), {
  ignoreIncompleteToolCalls: true,
});
console.log(JSON.stringify({ valid, roles: forModel.map(({ role }) => role) }));

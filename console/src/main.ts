// The page that shows one session, live.

import { Conversation } from "./conversation";
import { Earlier, PAGE } from "./earlier";
import { Notice } from "./notice";
import { Session } from "./session";
import { HistoryStream } from "./stream";

const KEY = "banyan.key";

const byId = (id: string): HTMLElement => {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
};

// As it stands in the address, which may be no text at all.
const encoded = location.pathname.split("/")[2] ?? "";
const decoded = (): string => {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
};
const id = decoded();
const resource = `/v1/sessions/${encoded}`;
const history = `/sessions/${encoded}/history`;
const headers = (): Record<string, string> => {
  const key = sessionStorage.getItem(KEY);
  return key ? { authorization: `Bearer ${key}` } : {};
};

const session = new Session();
const notice = new Notice(byId("connection"), byId("notice"));
const around = {
  attachments: `${resource}/attachments/`,
  load: async (address: string): Promise<Blob> => {
    const response = await fetch(address, { headers: headers() });
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return response.blob();
  },
};
const conversation = new Conversation(session, around, byId("conversation"), byId("newest"));

const earlier = new Earlier(history, headers);
const begin = (): void => {
  session.begin();
  earlier.begin();
};

const stream = new HistoryStream(`${history}?stream=1&deltas=1&limit=${PAGE}`, {
  begins: begin,
  takes: ({ event, data }) => {
    if (event === "history::reset") begin();
    conversation.touched(session.take(event, JSON.parse(data)));
    if (event === "history::ready") byId("earlier").hidden = !(earlier.more && session.order.length >= PAGE);
    if (session.deleted) notice.tell("This session was deleted", "What you see is what it was. It is gone when you close this page.");
    else if (session.ready && session.order.length === 0) notice.tell("Nothing was said yet", "Messages appear here as they are written.");
    else notice.none();
  },
  connection: (state) => {
    notice.connection(state);
    if (state.is === "live") void title();
    if (state.is === "lost" && !session.ready) notice.tell("No connection", state.why, "This page goes on trying.");
    if (state.is !== "refused") return;
    if (state.status === 401) notice.askForKey(sessionStorage.getItem(KEY) ? "It does not know the one that you gave." : "", open);
    else if (state.status === 404) notice.tell("There is no such session", `Nothing is kept here under the id ${id}, or your key may not see it.`);
    else notice.tell("This session cannot be shown", state.why);
  },
});

const open = (key: string | null): void => {
  if (key) sessionStorage.setItem(KEY, key);
  notice.none();
  notice.connection({ is: "connecting" });
  void stream.read(key);
};

// What people call the session, when it has a name.
const title = async (): Promise<void> => {
  const response = await fetch(resource, { headers: headers() }).catch(() => null);
  const found = response?.ok ? await response.json().catch(() => null) : null;
  const name = found?.meta?.title;
  if (typeof name !== "string" || name === "") return;
  byId("title").textContent = name;
  byId("id").textContent = id;
  document.title = `${name} · Banyan`;
};

byId("earlier").addEventListener("click", async () => {
  try {
    const messages = await earlier.page();
    conversation.keepingPlace(session.precede(messages));
    byId("earlier").hidden = !earlier.more;
  } catch {
    byId("earlier").textContent = "Earlier messages could not be read. Try again";
  }
});

byId("title").textContent = id;
document.title = `${id} · Banyan`;
open(sessionStorage.getItem(KEY));

// Reads the history stream with `fetch`, which unlike `EventSource` can send a key. Connects again when the connection is lost, and goes
// on after the last position that it saw.

import { type Frame, FrameReader } from "./sse";

export type Connection =
  | { is: "connecting" }
  | { is: "live" }
  | { is: "lost"; why: string }
  | { is: "refused"; status: number; why: string }
  | { is: "ended" };

interface Listener {
  // All messages are about to be sent anew.
  begins(): void;
  takes(frame: Frame): void;
  connection(state: Connection): void;
}

// The server says something every 15 s; silence means that the connection is dead.
const SILENCE = 40_000;
const SHORTEST_WAIT = 500;
const LONGEST_WAIT = 10_000;

export class HistoryStream {
  #address: string;
  #listener: Listener;
  #position: string | null = null;
  #wait = SHORTEST_WAIT;
  #running: AbortController | null = null;

  constructor(address: string, listener: Listener) {
    this.#address = address;
    this.#listener = listener;
    // A machine that wakes up or finds its network again need not wait.
    addEventListener("online", () => this.#wake());
    document.addEventListener("visibilitychange", () => this.#wake());
  }

  // Reads until the stream is refused or the session is gone.
  async read(key: string | null): Promise<void> {
    this.#running?.abort();
    const running = new AbortController();
    this.#running = running;
    while (!running.signal.aborted) {
      const state = await this.#connect(key, running.signal);
      if (running.signal.aborted) return;
      this.#listener.connection(state);
      if (state.is === "refused" || state.is === "ended") return;
      await this.#pause(running.signal);
    }
  }

  async #connect(key: string | null, ended: AbortSignal): Promise<Connection> {
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (key) headers.authorization = `Bearer ${key}`;
    if (this.#position) headers["last-event-id"] = this.#position;
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE);
    try {
      const signal = AbortSignal.any([ended, silence.signal]);
      const response = await fetch(this.#address, { headers, signal, cache: "no-store" });
      if (!response.ok || !response.body) return await this.#refusal(response);
      this.#wait = SHORTEST_WAIT;
      if (!this.#position) this.#listener.begins();
      this.#listener.connection({ is: "live" });
      const frames = new FrameReader();
      const decoder = new TextDecoder();
      const reader = response.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return { is: "lost", why: "The server ended the connection." };
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE);
        for (const frame of frames.read(decoder.decode(value, { stream: true }))) {
          if (frame.id) this.#position = frame.id;
          // What happened in between is no longer kept, so everything is asked for anew.
          if (frame.event === "banyan::resync") this.#position = null;
          this.#listener.takes(frame);
          if (frame.event === "history::deleted") return { is: "ended" };
        }
      }
    } catch {
      return { is: "lost", why: "The server cannot be reached." };
    } finally {
      clearTimeout(timer);
      silence.abort();
    }
  }

  async #refusal(response: Response): Promise<Connection> {
    const problem = await response.json().catch(() => ({}));
    const why = typeof problem?.detail === "string" ? problem.detail : `The server answered ${response.status}.`;
    if (problem?.code === "session/invalid_cursor" && this.#position) {
      this.#position = null;
      return { is: "lost", why: "The server does not know where this page was." };
    }
    const passing = response.status === 429 || response.status >= 500;
    return passing ? { is: "lost", why } : { is: "refused", status: response.status, why };
  }

  #wakeUp = () => {};

  #wake(): void {
    if (document.visibilityState === "visible") this.#wakeUp();
  }

  // Waits before the next attempt, longer each time, and never as long as everybody else.
  #pause(ended: AbortSignal): Promise<void> {
    const wait = this.#wait * (0.5 + Math.random() / 2);
    this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT);
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, wait);
      this.#wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
      ended.addEventListener("abort", this.#wakeUp, { once: true });
    });
  }
}

// Asks the frame that draws diagrams. It is made when the first diagram is asked for, and made anew when one takes too long.

import type { Answered } from "./protocol";

// The address of the frame's page, which the build knows.
declare const DIAGRAM_PAGE: string;

const PATIENCE = 20_000;

interface Drawn {
  svg: string;
  width: number;
}
type Wait = (answer: Answered) => void;

class Frame {
  #element = document.createElement("iframe");
  #waiting = new Map<number, Wait>();
  #ready: Promise<void>;

  constructor() {
    this.#element.setAttribute("sandbox", "allow-scripts");
    this.#element.className = "drawer";
    this.#element.tabIndex = -1;
    this.#element.ariaHidden = "true";
    this.#element.src = DIAGRAM_PAGE;
    let begin = () => {};
    this.#ready = new Promise((resolve) => {
      begin = resolve;
    });
    addEventListener("message", ({ data, source }) => {
      if (source !== this.#element.contentWindow) return;
      if (data === "ready") begin();
      else this.#waiting.get(data?.number)?.(data);
    });
    document.body.append(this.#element);
  }

  async draw(number: number, source: string, dark: boolean): Promise<Answered> {
    await this.#ready;
    return new Promise((resolve) => {
      this.#waiting.set(number, (answer) => {
        this.#waiting.delete(number);
        resolve(answer);
      });
      this.#element.contentWindow?.postMessage({ number, source, dark }, "*");
    });
  }

  remove(): void {
    this.#element.remove();
  }
}

let frame: Frame | null = null;
let count = 0;
let last: Promise<unknown> = Promise.resolve();

// The picture of a diagram. One is drawn after the other.
export const drawn = (source: string, dark: boolean): Promise<Drawn> => {
  const next = last.then(() => draw(source, dark));
  last = next.catch(() => {});
  return next;
};

const draw = async (source: string, dark: boolean): Promise<Drawn> => {
  frame ??= new Frame();
  count += 1;
  const late = new Promise<null>((resolve) => setTimeout(resolve, PATIENCE, null));
  const answer = await Promise.race([frame.draw(count, source, dark), late]);
  if (answer === null) {
    frame.remove();
    frame = null;
    throw new Error("It takes too long.");
  }
  if ("error" in answer) throw new Error(String(answer.error));
  return { svg: String(answer.svg), width: Number(answer.width) };
};

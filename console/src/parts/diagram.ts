// Mermaid diagrams. They are drawn in a frame that has no rights and no network (diagram/frame.ts) and come back as pictures, which
// run nothing either.

import { element, named, whenNear } from "../dom";
import { type Part, spelled } from "../history";
import { drawn } from "../diagram/draw";
import { dark } from "../theme";
import { data } from "./data";

export const diagram = (part: Part): HTMLElement => {
  const source = spelled(part.definition);
  const place = named("div", "drawing", named("p", "elsewhere", "Drawing the diagram…"));
  const figure = named("figure", "diagram", place, data("Source of the diagram", source));
  whenNear(figure, () => {
    void show(place, source);
    dark.addEventListener("change", () => void show(place, source));
  });
  return figure;
};

const show = async (place: HTMLElement, source: string): Promise<void> => {
  try {
    const { svg, width } = await drawn(source, dark.matches);
    const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    const image = element("img", { alt: "Diagram; its source is below", width: Math.ceil(width) });
    image.addEventListener("load", () => URL.revokeObjectURL(url), { once: true });
    image.src = url;
    place.replaceChildren(image);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    place.replaceChildren(named("p", "elsewhere", "This diagram cannot be drawn. Mermaid says:"), named("pre", "", why));
  }
};

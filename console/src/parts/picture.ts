// Pictures. Those of this server and those that are in the conversation itself are shown; those elsewhere are links, because whoever
// keeps them would learn who reads this.

import { element, link, named, whenNear } from "../dom";
import { type Part, words } from "../history";
import { isLink, isOwnPicture } from "../markdown";
import type { Surroundings } from "./view";

export const picture = (part: Part, around: Surroundings): HTMLElement => {
  const address = words(part.url);
  const name = words(part.alt ?? part.caption ?? part.filename ?? part.name);
  const caption = words(part.caption);
  const figure = named("figure", "picture");
  const image = element("img", { alt: name, decoding: "async" });
  if (isOwnPicture(address)) {
    image.src = address;
    figure.append(image);
  } else if (address.startsWith(around.attachments)) {
    figure.append(image);
    whenNear(figure, () => void load(image, address, around));
  } else if (isLink(address)) {
    figure.append(named("p", "elsewhere", "🖼 Picture on another server, not loaded: ", link(address, name || address)));
  } else {
    figure.append(named("p", "elsewhere", `🖼 Picture that cannot be shown: ${name || "no name"}`));
  }
  if (caption) figure.append(named("figcaption", "", caption));
  return figure;
};

const load = async (image: HTMLImageElement, address: string, around: Surroundings): Promise<void> => {
  try {
    const url = URL.createObjectURL(await around.load(address));
    image.addEventListener("load", () => URL.revokeObjectURL(url), { once: true });
    image.src = url;
  } catch {
    image.replaceWith(named("p", "elsewhere", `🖼 This picture could not be loaded: ${image.alt || address}`));
  }
};

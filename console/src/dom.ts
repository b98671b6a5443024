// Elements from content. Text is only ever set as text.

type Child = Node | string | null | undefined;

export const element = <Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  properties: Partial<HTMLElementTagNameMap[Tag]> = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== ""));
  return made;
};

// An element with a class, which is what most of them are.
export const named = <Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  className: string,
  ...children: Child[]
): HTMLElementTagNameMap[Tag] => element(tag, { className } as Partial<HTMLElementTagNameMap[Tag]>, ...children);

// A row that opens. What is inside is made when it is first opened, since most rows never are.
export const folded = (className: string, summary: Child[], inside: () => Child[], open = false): HTMLDetailsElement => {
  const row = named("details", className, named("summary", "", ...summary));
  const fill = () => row.append(named("div", "inside", ...inside().filter(Boolean)));
  row.addEventListener("toggle", fill, { once: true });
  row.open = open;
  return row;
};

// A link to another site, which learns nothing of this page.
export const link = (address: string, ...children: Child[]): HTMLAnchorElement =>
  element("a", { href: address, target: "_blank", rel: "noopener noreferrer nofollow" }, ...children);

// Does it when the element is about to be seen, once.
export const whenNear = (watched: Element, act: () => void): void => {
  acts.set(watched, act);
  nearby.observe(watched);
};

const acts = new WeakMap<Element, () => void>();
const nearby = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      nearby.unobserve(target);
      acts.get(target)?.();
    }
  },
  { rootMargin: "800px" },
);

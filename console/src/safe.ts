// HTML of Markdown as nodes of the page. Whatever is not on these lists is dropped.

import DOMPurify from "dompurify";
import { isLink, isOwnPicture } from "./markdown";

const RULES = {
  ALLOWED_TAGS: [
    ...["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "code", "em", "strong", "s"],
    ...["ul", "ol", "li", "div", "table", "thead", "tbody", "tr", "th", "td", "a", "img"],
  ],
  ALLOWED_ATTR: ["href", "title", "src", "alt", "start", "class", "data-language"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
} as const;

DOMPurify.addHook("uponSanitizeAttribute", (_node, attribute) => {
  const { attrName: name, attrValue: value } = attribute;
  if (name === "href") attribute.keepAttr = isLink(value);
  if (name === "src") attribute.keepAttr = isOwnPicture(value);
  if (name === "class") attribute.keepAttr = /^(?:scroll|align-(?:left|center|right))$/.test(value);
});
DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.nodeName !== "A") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
});

export const safe = (html: string): DocumentFragment => DOMPurify.sanitize(html, { ...RULES, ALLOWED_TAGS: [...RULES.ALLOWED_TAGS], ALLOWED_ATTR: [...RULES.ALLOWED_ATTR] });

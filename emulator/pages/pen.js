// @ts-check

export const FONT = "11px system-ui, sans-serif";
export const STRONG_FONT = "600 11px system-ui, sans-serif";

const LANE_COLOURS = [
  "#3b6fb6",
  "#c77c02",
  "#8e5ea2",
  "#2a9d8f",
  "#d0679d",
  "#6b7a1e",
  "#5f5fc4",
  "#8a5a44",
  "#1c91c0",
  "#7b8794",
];

/**
 * Return the colour of a lane and its partitions; never red, which marks errors.
 * @param {number} index
 */
export function laneColour(index) {
  return LANE_COLOURS[index] ?? `hsl(${30 + ((index * 137.508) % 290)} 45% ${index % 2 ? 42 : 55}%)`;
}

/** Colours and hatches of the style sheet (`--k-…`), which defines the light and the dark scheme. */
export class Palette {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    /** @type {Map<string, CanvasPattern>} */
    this.hatches = new Map();
    /** @type {Map<string, string>} */
    this.colours = new Map();
  }

  /** @param {string} name */
  colour(name) {
    const known = this.colours.get(name);
    if (known) return known;
    const colour = getComputedStyle(this.root).getPropertyValue(`--k-${name}`).trim() || "#888";
    this.colours.set(name, colour);
    return colour;
  }

  /** Read all colours again, after a change of the colour scheme. */
  reset() {
    this.colours.clear();
    this.hatches.clear();
  }

  /**
   * Return a hatch pattern in a colour of the style sheet.
   * @param {string} name
   */
  hatch(name) {
    const known = this.hatches.get(name);
    if (known) return known;
    const tile = document.createElement("canvas");
    tile.width = tile.height = 7;
    const context = contextOf(tile);
    context.strokeStyle = this.colour(name);
    context.lineWidth = 1.6;
    context.beginPath();
    for (const shift of [-7, 0, 7]) {
      context.moveTo(shift - 1, 8);
      context.lineTo(shift + 8, -1);
    }
    context.stroke();
    const pattern = /** @type {CanvasPattern} */ (context.createPattern(tile, "repeat"));
    this.hatches.set(name, pattern);
    return pattern;
  }
}

/** @param {HTMLCanvasElement} canvas */
const contextOf = (canvas) => /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));

/** Basic shapes on one canvas. */
export class Pen {
  /**
   * Resize and clear a canvas.
   * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height @param {Palette} palette
   */
  constructor(canvas, width, height, palette) {
    const ratio = globalThis.devicePixelRatio || 1;
    canvas.width = Math.max(1, Math.round(width * ratio));
    canvas.height = Math.max(1, Math.round(height * ratio));
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    this.width = width;
    this.palette = palette;
    this.context = contextOf(canvas);
    this.context.scale(ratio, ratio);
    this.context.textBaseline = "middle";
    this.context.font = FONT;
  }

  /**
   * Fill a box, clipped to the canvas; return whether it is visible.
   * @param {number} from @param {number} to @param {number} top @param {number} height
   * @param {string | CanvasPattern} fill @param {number} [radius]
   */
  box(from, to, top, height, fill, radius = 3) {
    const left = Math.max(from, -4);
    const right = Math.min(Math.max(to, from + 1.5), this.width + 4);
    if (right < 0 || left > this.width) return false;
    this.context.fillStyle = fill;
    this.context.beginPath();
    this.context.roundRect(left, top, right - left, height, Math.min(radius, (right - left) / 2));
    this.context.fill();
    return true;
  }

  /**
   * Fill a rectangle.
   * @param {number} left @param {number} top @param {number} width @param {number} height @param {string} colour
   */
  rectangle(left, top, width, height, colour) {
    this.context.fillStyle = colour;
    this.context.fillRect(left, top, width, height);
  }

  /** @param {string} text @param {string} [font] */
  textWidth(text, font = FONT) {
    this.context.font = font;
    return this.context.measureText(text).width;
  }

  /** @param {string} text @param {number} left @param {number} middle @param {string} colour @param {string} [font] */
  text(text, left, middle, colour, font = FONT) {
    this.context.font = font;
    this.context.fillStyle = colour;
    this.context.fillText(text, left, middle);
  }

  /**
   * Write a text inside a box, shortened to fit; write nothing if only a few letters would fit.
   * @param {string} text @param {number} from @param {number} to @param {number} middle @param {string} colour
   * @param {string} [font]
   */
  boxText(text, from, to, middle, colour, font = FONT) {
    const left = Math.max(from, 0) + 5;
    const room = Math.min(to, this.width) - left - 3;
    if (room < 22) return;
    const width = this.textWidth(text, font);
    const letters = width > room ? Math.floor((room / width) * text.length) - 1 : text.length;
    if (letters < Math.min(3, text.length)) return;
    this.text(letters < text.length ? `${text.slice(0, letters)}…` : text, left, middle, colour, font);
  }

  /** @param {number} x @param {number} y @param {string} colour @param {number} [radius] */
  disc(x, y, colour, radius = 5.5) {
    this.context.fillStyle = colour;
    this.context.strokeStyle = this.palette.colour("paper");
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 2 * Math.PI);
    this.context.fill();
    this.context.stroke();
  }

  /** @param {[number, number][]} points */
  stroke(points) {
    this.context.strokeStyle = "#fff";
    this.context.lineWidth = 1.5;
    this.context.beginPath();
    for (const [x, y] of points) this.context.lineTo(x, y);
    this.context.stroke();
    this.context.lineWidth = 1;
  }

  /** @param {number} x @param {number} y */
  cross(x, y) {
    this.stroke([
      [x - 2.4, y - 2.4],
      [x + 2.4, y + 2.4],
    ]);
    this.stroke([
      [x - 2.4, y + 2.4],
      [x + 2.4, y - 2.4],
    ]);
  }

  /** @param {number} x @param {number} y */
  tick(x, y) {
    this.stroke([
      [x - 3, y],
      [x - 0.6, y + 2.6],
      [x + 3, y - 2.6],
    ]);
  }

  /** @param {number} x @param {number} y @param {string} colour */
  diamond(x, y, colour) {
    this.context.fillStyle = colour;
    this.context.beginPath();
    this.context.moveTo(x, y - 5);
    this.context.lineTo(x + 4, y);
    this.context.lineTo(x, y + 5);
    this.context.lineTo(x - 4, y);
    this.context.fill();
  }
}

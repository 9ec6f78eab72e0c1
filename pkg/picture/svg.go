package picture

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// Hues are the colours of owners, as hue, saturation and lightness: on a light page and on a dark one. The colour-blind
// can tell them apart. The web page has the same.
var Hues = map[string][][3]int{
	"light": {{205, 88, 44}, {34, 42, 44}, {156, 61, 33}, {325, 65, 49}, {264, 76, 48}, {347, 72, 20}, {74, 88, 24},
		{219, 65, 20}},
	"dark": {{202, 52, 81}, {24, 75, 51}, {151, 87, 75}, {327, 85, 48}, {260, 88, 65}, {14, 40, 58}, {49, 82, 68},
		{229, 44, 63}},
}

// Shades are by how much the Runs of an owner are lighter or darker.
var Shades = []int{0, -7, 7}

// Measures of an image, in pixels.
const (
	svgWidth  = 720
	svgMargin = 12
	svgCell   = 13
	svgLine   = 18
	svgLetter = 6.7 // how wide a letter is, about
)

// svg is an image that is being drawn.
type svg struct {
	strings.Builder
	owners map[string]string // of Runs
	colour map[string]string // the classes of Runs
	y      float64
}

// newSVG begins an image of some Runs, of which each has its owner.
func newSVG(runs []string, owners map[string]string) *svg {
	s := &svg{owners: owners, colour: map[string]string{}, y: svgMargin}
	order := slices.Sorted(slices.Values(runs))
	slices.SortStableFunc(order, func(a, b string) int { return strings.Compare(owners[a], owners[b]) })
	hue, shade := -1, 0
	for i, run := range order {
		if i == 0 || owners[order[i-1]] != owners[run] {
			hue, shade = hue+1, 0
		}
		s.colour[run] = fmt.Sprintf("o%d s%d", hue%len(Hues["light"]), shade%len(Shades))
		shade++
	}
	return s
}

// done returns the image.
func (s *svg) done(title string) string {
	var out strings.Builder
	height := s.y + svgMargin
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f" `+
		`font-family="system-ui, sans-serif" font-size="12" role="img">`+"\n<title>%s</title>\n<style>\n", svgWidth, height,
		svgWidth, height, html.EscapeString(title))
	for i, theme := range []string{"light", "dark"} {
		ink := [][4]string{{"#16191d", "#5a6472", "#fff", "#b3261e"}, {"#e8eaed", "#a3acb8", "#14171b", "#ff8a80"}}[i]
		rules := fmt.Sprintf(".t{fill:%s}.f{fill:%s}.b{fill:%s}.n{stroke:%[2]s;fill:none}.x{stroke:%[4]s;fill:none}", ink[0],
			ink[1], ink[2], ink[3])
		for n, h := range Hues[theme] {
			for m, shade := range Shades {
				rules += fmt.Sprintf(".o%d.s%d{--c:hsl(%d %d%% %d%%)}", n, m, h[0], h[1], h[2]+shade)
			}
		}
		if theme == "dark" {
			rules = "@media (prefers-color-scheme:dark){" + rules + "}"
		}
		out.WriteString(rules + "\n")
	}
	out.WriteString(".h{fill:var(--c)}.r{stroke:var(--c);fill:none;stroke-width:1.5}.k{font-weight:600}" +
		".g{stroke-width:.4}.d{stroke-dasharray:4 3}.l{font-size:9px;text-anchor:middle}</style>\n")
	fmt.Fprintf(&out, `<rect class="b" width="%d" height="%.0f"/>`+"\n%s</svg>\n", svgWidth, height, s.String())
	return out.String()
}

func (s *svg) text(x, y float64, class, words string) {
	fmt.Fprintf(s, `<text class="%s" x="%.0f" y="%.0f">%s</text>`+"\n", class, x, y, html.EscapeString(words))
}

func (s *svg) rect(x, y, w, h float64, class string) {
	fmt.Fprintf(s, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", class, x, y, w, h)
}

func (s *svg) line(x, y, x2, y2 float64, class string) {
	fmt.Fprintf(s, `<path class="%s" d="M%.1f %.1fL%.1f %.1f"/>`+"\n", class, x, y, x2, y2)
}

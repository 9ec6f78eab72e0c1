package dashboard

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// colour is a colour as sRGB in linear light, from 0 to 1.
type colour [3]float64

// visions are what people see of a colour: all, or without the long, the medium or the short cones (Machado, Oliveira
// and Fernandes 2009, severity 1).
var visions = map[string][3][3]float64{
	"all cones":    {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

func times(m [3][3]float64, c colour) (out colour) {
	for i, row := range m {
		out[i] = row[0]*c[0] + row[1]*c[1] + row[2]*c[2]
	}
	return out
}

// seen is a colour in CIELAB as somebody sees it.
func (c colour) seen(by [3][3]float64) (l, a, b float64) {
	v := times(by, c)
	for i := range v {
		v[i] = min(1, max(0, v[i]))
	}
	v = times([3][3]float64{{0.4124564, 0.3575761, 0.1804375}, {0.2126729, 0.7151522, 0.0721750},
		{0.0193339, 0.1191920, 0.9503041}}, v)
	f := func(t float64) float64 {
		if t > 0.008856 {
			return math.Cbrt(t)
		}
		return 7.787*t + 16./116
	}
	x, y, z := f(v[0]/0.95047), f(v[1]), f(v[2]/1.08883)
	return 116*y - 16, 500 * (x - y), 200 * (y - z)
}

// apart is how far apart two colours are for whom they are the least far apart: about 2 can just be seen.
func apart(c, d colour) (distance float64, to string) {
	distance = math.Inf(1)
	for name, by := range visions {
		l, a, b := c.seen(by)
		l2, a2, b2 := d.seen(by)
		if of := math.Sqrt((l-l2)*(l-l2) + (a-a2)*(a-a2) + (b-b2)*(b-b2)); of < distance {
			distance, to = of, name
		}
	}
	return distance, to
}

// contrast is that of WCAG.
func contrast(c, d colour) float64 {
	luminance := func(c colour) float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] + 0.05 }
	return max(luminance(c)/luminance(d), luminance(d)/luminance(c))
}

// light makes light linear.
func light(srgb float64) float64 {
	if srgb <= 0.04045 {
		return srgb / 12.92
	}
	return math.Pow((srgb+0.055)/1.055, 2.4)
}

func hsl(h, s, l float64) colour {
	s, l = s/100, l/100
	f := func(n float64) float64 {
		k := math.Mod(n+h/30, 12)
		return light(l - s*min(l, 1-l)*max(-1, min(k-3, 9-k, 1)))
	}
	return colour{f(0), f(8), f(4)}
}

func ofHex(t *testing.T, text string) (c colour) {
	if len(text) == 3 {
		text = fmt.Sprint(text[:1], text[:1], text[1:2], text[1:2], text[2:], text[2:])
	}
	for i := range c {
		n, err := strconv.ParseUint(text[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c[i] = light(float64(n) / 255)
	}
	return c
}

// found returns what an expression finds in a file of the page.
func found(t *testing.T, file, expression string) [][]string {
	t.Helper()
	text, err := files.ReadFile("page/" + file)
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(expression).FindAllStringSubmatch(string(text), -1)
	if all == nil {
		t.Fatalf("%s has no %s", file, expression)
	}
	return all
}

func numbers[T any](t *testing.T, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// TestOwnersCanBeToldApart looks at the colours of owners and the shades of their Runs as the colour-blind see them, on
// a light page and on a dark one. What a GPU is used for, and how its node is, needs no colour: shapes tell.
func TestOwnersCanBeToldApart(t *testing.T) {
	shades := numbers[[]int](t, found(t, "colours.js", `const shades = (\[.*\]);`)[0][1])
	if diff := cmp.Diff(picture.Shades, shades); diff != "" {
		t.Errorf("the shades of images are others (-image +page):\n%s", diff)
	}
	backs := found(t, "style.css", `--back: #([0-9a-f]+);`)
	for i, theme := range []string{"light", "dark"} {
		back := ofHex(t, backs[i][1])
		owners := numbers[[][3]int](t, found(t, "colours.js", theme+`: (\[\[.*\]\]),`)[0][1])
		if diff := cmp.Diff(picture.Hues[theme], owners); diff != "" {
			t.Errorf("%s: the colours of images are others (-image +page):\n%s", theme, diff)
		}
		all := make([][]colour, len(owners))
		for n, o := range owners {
			for _, shade := range shades {
				c := hsl(float64(o[0]), float64(o[1]), float64(o[2]+shade))
				if got := contrast(c, back); got < 3 {
					t.Errorf("%s: owner %d, shade %v has a contrast of %.1f with the page", theme, n, shade, got)
				}
				for _, other := range all[n] {
					if d, to := apart(c, other); d < 5 {
						t.Errorf("%s: two shades of owner %d are %.1f apart to %s", theme, n, d, to)
					}
				}
				all[n] = append(all[n], c)
				for m := range n {
					for _, other := range all[m] {
						if d, to := apart(c, other); d < 12 {
							t.Errorf("%s: owners %d and %d are %.1f apart to %s", theme, n, m, d, to)
						}
					}
				}
			}
		}
	}
}

// TestWhoPaysCanBeToldApart looks likewise at what the bars of envelopes are filled with; spares and overdraft are
// hatched, in two directions.
func TestWhoPaysCanBeToldApart(t *testing.T) {
	fills := []string{found(t, "style.css", `\.bar span, \.key \{ background: #([0-9a-f]+); \}`)[0][1]}
	for _, name := range []string{"family", "lent"} {
		rule := `\.bar \.` + name + `, \.key\.` + name + ` \{ background: #([0-9a-f]+); \}`
		fills = append(fills, found(t, "style.css", rule)[0][1])
	}
	for i := range fills {
		for j := range i {
			if d, to := apart(ofHex(t, fills[i]), ofHex(t, fills[j])); d < 15 {
				t.Errorf("#%s and #%s are %.1f apart to %s", fills[i], fills[j], d, to)
			}
		}
	}
}

package picture

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// TimeSVG draws bars as an image, lane by lane, from one instant to another: full where GPUs were held, dashed where
// they may be held until a maxDuration or where an envelope pays or a node is out of service, framed where they are
// reserved.
func TimeSVG(bars []Bar, from, to, now time.Time) string {
	var runs []string
	owners := map[string]string{}
	for i := range bars {
		if b := &bars[i]; b.Owner != "" && owners[b.Name] == "" {
			runs, owners[b.Name] = append(runs, b.Name), b.Owner
		}
	}
	s := newSVG(runs, owners)
	at := func(t time.Time) float64 {
		part := float64(t.Sub(from)) / float64(to.Sub(from))
		return svgMargin + (svgWidth-2*svgMargin)*min(1, max(0, part))
	}
	var placed []strip
	heads := map[float64]string{}
	top := s.y
	s.y += svgLine
	var ends []time.Time // of the lines of the lane
	for i := range bars {
		b := &bars[i]
		if i == 0 || bars[i-1].Lane != b.Lane {
			s.y += float64(svgLine*len(ends)) + svgLine
			ends = nil
			heads[s.y-4] = b.Lane
		}
		line := slices.IndexFunc(ends, func(end time.Time) bool { return !end.After(b.From) })
		if line < 0 {
			line, ends = len(ends), append(ends, time.Time{})
		}
		ends[line] = to
		switch {
		case b.To != nil:
			ends[line] = *b.To
		case b.Kind == Held:
			ends[line] = now
		}
		placed = append(placed, strip{b, at(b.From), at(ends[line]), s.y + float64(svgLine*line)})
	}
	s.y += float64(svgLine * len(ends))
	s.ticks(at, top, from, to, now)
	for _, y := range slices.Sorted(maps.Keys(heads)) {
		s.text(svgMargin, y, "t k", heads[y])
	}
	for _, of := range placed {
		room := svgWidth - svgMargin - of.right
		for _, other := range placed {
			if other.y == of.y && other.left >= of.right {
				room = min(room, other.left-of.right)
			}
		}
		s.strip(of, room)
	}
	return s.done("Who held GPUs, and who is going to")
}

// strip is a bar with its place.
type strip struct {
	*Bar
	left, right, y float64
}

// strip draws a bar, with its name in it or, where there is room, behind it.
func (s *svg) strip(b strip, room float64) {
	const high = svgLine - 4
	wide := max(1, b.right-b.left)
	class, inside := "n d", "t"
	switch b.Kind {
	case Held:
		class, inside = "h "+s.colour[b.Name], "b"
	case Reserved:
		class = "r " + s.colour[b.Name]
	case Ahead:
		class = "d r " + s.colour[b.Name]
	}
	s.rect(b.left, b.y, wide, high, class)
	words := b.Name
	if b.GPUs > 0 {
		words = fmt.Sprintf("%s %d", b.Name, b.GPUs)
	}
	switch needs := svgLetter*float64(len(words)) + 8; {
	case needs < wide:
		s.text(b.left+4, b.y+high-3, inside, words)
	case needs < room:
		s.text(b.right+4, b.y+high-3, "t", words)
	}
}

// ticks draws the axis: round distances from now.
func (s *svg) ticks(at func(time.Time) float64, top float64, from, to, now time.Time) {
	step := time.Second
	for _, step = range []time.Duration{5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute,
		15 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour} {
		if to.Sub(from)/step <= 8 {
			break
		}
	}
	for n := from.Sub(now) / step; now.Add(n * step).Before(to); n++ {
		t := now.Add(n * step)
		if t.Before(from) {
			continue
		}
		words := "now"
		class := "x"
		if n != 0 {
			words, class = span(n*step), "n"
		}
		if at(t) > svgWidth-60 {
			continue
		}
		s.line(at(t), top, at(t), s.y, class)
		s.text(at(t)+3, top+11, "f", words)
	}
}

// span says how far from now an instant is.
func span(d time.Duration) string {
	short := func(d time.Duration) string {
		switch {
		case d%(24*time.Hour) == 0:
			return fmt.Sprintf("%dd", d/(24*time.Hour))
		case d%time.Hour == 0:
			return fmt.Sprintf("%dh", d/time.Hour)
		case d%time.Minute == 0:
			return fmt.Sprintf("%dm", d/time.Minute)
		}
		return fmt.Sprintf("%ds", d/time.Second)
	}
	if d < 0 {
		return short(-d) + " ago"
	}
	return "in " + short(d)
}

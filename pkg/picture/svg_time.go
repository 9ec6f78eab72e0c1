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
	var ends []float64 // of the lines of the lane
	for i := range bars {
		b := &bars[i]
		if i == 0 || bars[i-1].Lane != b.Lane {
			s.y += float64(svgLine*len(ends)) + svgLine
			ends = nil
			heads[s.y-4] = b.Lane
		}
		of := strip{b, at(b.From), at(b.end(now, to)), 0}
		line := slices.IndexFunc(ends, func(end float64) bool { return end <= of.left })
		if line < 0 {
			line, ends = len(ends), append(ends, 0)
		}
		ends[line] = of.right
		if of.needs() > of.right-of.left {
			ends[line] += of.needs() // its name stands behind it
		}
		of.y = s.y + float64(svgLine*line)
		placed = append(placed, of)
	}
	s.y += float64(svgLine * len(ends))
	s.ticks(at, top, from, to, now)
	for _, y := range slices.Sorted(maps.Keys(heads)) {
		s.text(svgMargin, y, "t k", heads[y])
	}
	for _, of := range placed {
		s.strip(of)
	}
	return s.done("Who held GPUs, and who is going to")
}

// strip is a bar with its place.
type strip struct {
	*Bar
	left, right, y float64
}

// end is when a bar ends that is drawn up to an instant.
func (b *Bar) end(now, to time.Time) time.Time {
	switch {
	case b.To != nil:
		return *b.To
	case b.Kind == Held:
		return now
	}
	return to
}

// words are what is written on a bar or behind it.
func (b *Bar) words() string {
	if b.GPUs > 0 {
		return fmt.Sprintf("%s %d", b.Name, b.GPUs)
	}
	return b.Name
}

// needs is how wide the words are.
func (b strip) needs() float64 { return svgLetter*float64(len(b.words())) + 8 }

// strip draws a bar, with its name in it or, where there is room, behind it.
func (s *svg) strip(b strip) {
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
	switch {
	case b.needs() <= wide:
		s.text(b.left+4, b.y+high-3, inside, b.words())
	case b.needs() < svgWidth-b.right:
		s.text(b.right+4, b.y+high-3, "t", b.words())
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
			words, class = span(n*step), "n g"
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

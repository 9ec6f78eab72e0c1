package session

import (
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Clock prints the time of day of an instant in the zone of the present, with the date where it is another day.
func Clock(t, now time.Time) string {
	return inDay(t, now, "15:04")
}

// ClockToSecond prints the time of day to the second, for what follows each other closely.
func ClockToSecond(t, now time.Time) string {
	return inDay(t, now, time.TimeOnly)
}

func inDay(t, now time.Time, layout string) string {
	local := t.In(now.Location())
	switch {
	case local.Year() != now.Year():
		layout = "Jan 2 2006 " + layout
	case local.YearDay() != now.YearDay():
		layout = "Jan 2 " + layout
	}
	return local.Format(layout)
}

// instant matches instants as data has them, in UTC, with the words before those that are examples of how to write one.
var instant = regexp.MustCompile(`(\b(such as|write it as|write a time as) )?\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// LocalTimes is a text for people with the instants in it, which others have written in UTC, by the clock of whoever
// reads it.
func LocalTimes(text string, now time.Time) string {
	return instant.ReplaceAllStringFunc(text, func(written string) string {
		t, err := time.Parse(time.RFC3339, written)
		if err != nil {
			return written // an example too
		}
		return Clock(t, now)
	})
}

// LocalCells has the cells of a table for people tell instants by the clock of whoever reads it.
func LocalCells(table *metav1.Table, now time.Time) {
	for i := range table.Rows {
		for j, cell := range table.Rows[i].Cells {
			if text, isText := cell.(string); isText {
				table.Rows[i].Cells[j] = LocalTimes(text, now)
			}
		}
	}
}

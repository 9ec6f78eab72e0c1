package config

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzParse: arguments are refused with a message, or they are whole: written out, they are read as the same again, and
// what is derived from them is within its bounds.
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		args, err := Parse([]byte(text))
		if err != nil {
			if len(err.Error()) <= len(Kind) {
				t.Errorf("refused without a word: %q", err)
			}
			return
		}
		written, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(written)
		if err != nil || !reflect.DeepEqual(args, again) {
			t.Errorf("%s\nis read as\n%+v, %v", written, again, err)
		}
		if rates := args.Rates(); rates.Spare < 0 || rates.Spare > 1000 || rates.Opportunistic < 0 ||
			rates.Opportunistic > 1000 {
			t.Errorf("rates are %v", rates)
		}
		if n := args.NodesAtOnce(1000); n < 3 || n > 1000 {
			t.Errorf("%d of 1,000 nodes at once", n)
		}
		for flavor, labels := range args.Flavors {
			for _, label := range labels {
				if got := args.FlavorOf(label); got != flavor {
					t.Errorf("label %q means %q, not %q", label, got, flavor)
				}
			}
		}
	})
}

package budget

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// FuzzSpend: what is read as GPU-hours is an amount that can be written and read again, and never less than nothing.
func FuzzSpend(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		spend, err := ParseSpend(text)
		if err != nil {
			return
		}
		if spend < 0 {
			t.Fatalf("%q is %d", text, spend)
		}
		if again, err := ParseSpend(spend.String()); err != nil || again != spend {
			t.Errorf("%q is %s, which is read as %s, %v", text, spend, again, err)
		}
	})
}

// FuzzRate: what is read as a rate lies between 0 and 1, and can be written and read again.
func FuzzRate(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		rate, err := ParseRate(text)
		if err != nil {
			return
		}
		if rate < 0 || rate > FullRate {
			t.Fatalf("%q is %d", text, rate)
		}
		if again, err := ParseRate(rate.String()); err != nil || again != rate {
			t.Errorf("%q is %s, which is read as %s, %v", text, rate, again, err)
		}
	})
}

// FuzzRecord: a record of settled Leases that somebody has edited is taken over or refused, and what is taken over is
// what the next record says, so that restarting changes nothing.
func FuzzRecord(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		var stored Record
		if json.Unmarshal([]byte(text), &stored) != nil {
			return
		}
		first := restart(stored)
		if second := restart(first); !reflect.DeepEqual(first, second) {
			t.Errorf("after a restart the record\n%+v\nhas become\n%+v", first, second)
		}
	})
}

// restart returns the record that accounts write which have read one, and nothing else.
func restart(stored Record) Record {
	a := NewAccounts(Rates{})
	a.SetRecord(stored)
	a.SetRecord(stored)
	a.Settle(stored.Budget, time.Unix(stored.Through, 0))
	return a.Record(stored.Budget)
}

package budget

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Spend is an amount of GPU time in thousandths of a GPU-second: exact, since rates have three decimals and time is
// counted in whole seconds (R7). An int64 holds ten million GPUs for 29 years.
type Spend int64

// GPUSecond and GPUHour are units of Spend.
const (
	GPUSecond Spend = 1000
	GPUHour         = 3600 * GPUSecond
)

// String returns GPU-hours with five decimals, cut off.
func (s Spend) String() string {
	sign := ""
	if s < 0 {
		sign, s = "-", -s
	}
	const place = 100000
	whole, rest := int64(s/GPUHour), int64(s%GPUHour)
	return fmt.Sprintf("%s%d.%05d", sign, whole, rest*place/int64(GPUHour))
}

// Rate is what a GPU-second is charged, in thousandths: 1000 is the full price.
type Rate int

// FullRate is the price of a GPU-second of an active rank.
const FullRate Rate = 1000

// Rates are the prices of what is not an active rank (R7).
type Rates struct{ Spare, Opportunistic Rate }

// ParseRate reads a rate from 0 to 1 with up to three decimals; empty is the full rate.
func ParseRate(text string) (Rate, error) {
	if text == "" {
		return FullRate, nil
	}
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseUint(whole+(fraction + "000")[:3], 10, 16)
	if err != nil || len(fraction) > 3 || whole == "" || n > uint64(FullRate) {
		return 0, fmt.Errorf("%q is not a rate: it must be a decimal from 0 to 1 with at most three places", text)
	}
	return Rate(n), nil
}

// String returns the rate as a decimal without needless zeros.
func (r Rate) String() string {
	if r == FullRate {
		return "1"
	}
	if r == 0 {
		return "0"
	}
	return "0." + strings.TrimRight(fmt.Sprintf("%03d", int(r)), "0")
}

// anchor is the instant that sums of Spend are kept relative to, so that they stay small: 2026-01-01.
const anchor = 1767225600

// seconds returns the whole seconds of Unix time from x to y. Counted like this, the parts of an interval add up to the
// whole, wherever it is cut.
func seconds(x, y time.Time) int64 { return y.Unix() - x.Unix() }

// accrual is a sum of Spend that grows with time while Leases are open. It can be read at any instant without looking
// at a Lease, and does not depend on the order in which they came.
type accrual struct {
	base   Spend
	weight int64 // thousandths of a GPU
}

// at returns the sum at an instant. What begins later counts as less than nothing then.
func (a accrual) at(unix int64) Spend { return a.base + Spend(a.weight*(unix-anchor)) }

// grow adds something of a weight that accrues from an instant on.
func (a *accrual) grow(weight, from int64) {
	a.base -= Spend(weight * (from - anchor))
	a.weight += weight
}

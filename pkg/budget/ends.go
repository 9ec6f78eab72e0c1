package budget

import "slices"

// endings are the open charges of an account that end by themselves, added up by the second in which they do: the pods
// of one Run end together, so that there are far fewer of them than Leases.
type endings struct {
	list []ending
	at   map[int64]int // where in the list a second is
}

type ending struct {
	unix   int64
	leases int
	gpus   [holders]int // of concurrency
	weight [holders]int64
}

// add counts a charge that ends at an instant, or with -1 counts it no more.
func (e *endings) add(unix int64, t holder, gpus int, weight int64, by int) {
	i, known := e.at[unix]
	if !known {
		if e.at == nil {
			e.at = map[int64]int{}
		}
		i = len(e.list)
		e.at[unix] = i
		e.list = append(e.list, ending{unix: unix})
	}
	e.list[i].leases += by
	e.list[i].gpus[t] += by * gpus
	e.list[i].weight[t] += int64(by) * weight
	if e.list[i].leases != 0 {
		return
	}
	last := len(e.list) - 1
	e.list[i] = e.list[last]
	e.at[e.list[i].unix] = i
	delete(e.at, unix)
	e.list = e.list[:last]
}

// left returns what is still to be spent by the charges of some holders.
func (e *endings) left(now int64, which []holder) Spend {
	var sum [holders]Spend
	for i := range e.list {
		seconds := min(max(0, e.list[i].unix-now), horizon)
		for t, weight := range e.list[i].weight {
			sum[t] += Spend(weight * seconds)
		}
	}
	var out Spend
	for t, s := range sum {
		if slices.Contains(which, holder(t)) {
			out += s
		}
	}
	return out
}

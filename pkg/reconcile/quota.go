package reconcile

import (
	"math"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// objectionTo is what the book is told of a problem.
func objectionTo(problem error) book.Objection {
	o := book.Objection{Why: refusedFor(problem)}
	if cause := first(problem); apierrors.IsForbidden(cause) {
		o.Quota, o.Most, o.Pods = quotaIn(cause.Error())
	}
	return o
}

// quotaIn reports whether a pod was refused for want of quota, by what the API server says, and how many such pods the
// quota is for in all, and how many pods whatever they ask for, 0 where it does not say that: "exceeded quota: NAME,
// requested: pods=1, used: pods=4, limited: pods=4".
func quotaIn(said string) (quota bool, most, pods int) {
	_, said, quota = strings.Cut(said, "exceeded quota")
	_, said, found := strings.Cut(said, "requested: ")
	if !quota || !found {
		return quota, 0, 0
	}
	said, limited, _ := strings.Cut(said, ", limited: ")
	said, _, _ = strings.Cut(said, ", used: ")
	limits, least := amountsIn(limited), int64(math.MaxInt32)
	for what, asked := range amountsIn(said) {
		if limit, known := limits[what]; known && asked > 0 {
			least = min(least, limit/asked)
			if n := int(limit / asked); (what == "pods" || what == "count/pods") && (pods == 0 || n < pods) {
				pods = n
			}
		}
	}
	if least == math.MaxInt32 {
		return true, 0, 0
	}
	return true, int(least), pods
}

// amountsIn returns the thousandths of what a list says, such as "pods=4,requests.cpu=500m".
func amountsIn(list string) map[string]int64 {
	out := map[string]int64{}
	for _, item := range strings.Split(list, ",") {
		what, amount, _ := strings.Cut(strings.TrimSpace(item), "=")
		if quantity, err := resource.ParseQuantity(amount); err == nil {
			out[what] = math.MaxInt64
			if quantity.CmpInt64(math.MaxInt64/1000) < 0 {
				out[what] = quantity.MilliValue()
			}
		}
	}
	return out
}

package cli

import (
	"fmt"
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// payerQuestion is what the answer to "who pays for this Run" is made of.
type payerQuestion struct {
	run     rqv1.Run
	budgets []rqv1.Budget
	leases  []rqv1.Lease // open ones of the Run
	rates   budget.Rates
	now     time.Time
	size    podSize
	demand  plan.Demand // worked out from the Run and the size
}

// payerAnswer says who pays and who would pay for a Run. It is what "kubectl runs budgets explain" prints, as text or as
// data.
type payerAnswer struct {
	Run         string        `json:"run"`
	Namespace   string        `json:"namespace"`
	Owner       rqv1.Owner    `json:"owner"`
	Phase       rqv1.RunPhase `json:"phase"`
	Flavor      string        `json:"flavor"`
	GPUsPerPod  int           `json:"gpusPerPod"`
	PodSizeFrom string        `json:"podSizeFrom"`
	// HeldGPUs are paid for now, WantedGPUs still needed, PayableGPUs how many of these would be paid for.
	HeldGPUs    int      `json:"heldGPUs"`
	WantedGPUs  int      `json:"wantedGPUs"`
	PayableGPUs int      `json:"payableGPUs"`
	ShortGPUs   int      `json:"shortGPUs"`
	Message     string   `json:"message,omitempty"`
	Remedies    []remedy `json:"remedies,omitempty"`
	Offers      []offer  `json:"offers"`
	// Unread says what could not be read, and so is missing above.
	Unread []string `json:"unread,omitempty"`
}

// offer is the part of one envelope.
type offer struct {
	Step        int               `json:"step"`
	Relation    rqv1.Relation     `json:"relation"`
	Owner       rqv1.Owner        `json:"owner"`
	Budget      string            `json:"budget"`
	Envelope    string            `json:"envelope"`
	Selector    map[string]string `json:"selector,omitempty"`
	Concurrency int               `json:"concurrency"`
	UsedGPUs    int               `json:"usedGPUs"`
	FreeGPUs    int               `json:"freeGPUs"`
	OffersGPUs  int               `json:"offersGPUs"`
	PaysGPUs    int               `json:"paysGPUs"`
	TakesGPUs   int               `json:"takesGPUs"`
	Limit       *limit            `json:"limit,omitempty"`
	Stops       string            `json:"stops"`
}

// limit is what keeps an envelope from paying for more.
type limit struct {
	Kind string `json:"kind"`
	Cap  string `json:"cap,omitempty"`
	Max  int64  `json:"max"`
	Left int64  `json:"left"`
}

// answer works out who pays and who would pay.
func (q *payerQuestion) answer() (payerAnswer, error) {
	if err := q.shape(); err != nil {
		return payerAnswer{}, err
	}
	a := payerAnswer{Run: q.run.Name, Namespace: q.run.Namespace, Owner: q.run.Spec.Owner, Phase: phaseOf(&q.run),
		Flavor: q.run.Spec.Resources.GPUType, GPUsPerPod: q.demand.GPUsPerPod, PodSizeFrom: q.size.from, HeldGPUs: q.held(), Offers: []offer{}}
	if started := waitOf(&q.run, q.now); started != nil {
		a.Message = started.Message
	}
	ask := q.ask()
	cover, err := q.cover(q.budgets, ask, q.now)
	if err != nil {
		return a, err
	}
	wanted := q.wanted(cover.Payable())
	takes := cover.Takes(wanted / q.demand.GPUsPerPod)
	a.WantedGPUs, a.PayableGPUs = wanted, min(wanted, cover.Payable())
	a.ShortGPUs = wanted - a.PayableGPUs
	left := wanted
	for i := range cover.Offers {
		left -= takes[i].Pods * q.demand.GPUsPerPod
		a.Offers = append(a.Offers, q.offer(&cover.Offers[i], takes[i], left))
	}
	a.Offers = append(a.Offers, q.others(cover)...)
	if a.ShortGPUs > 0 {
		a.Remedies, err = q.remedies(cover, ask, wanted)
	}
	return a, err
}

// cover asks what could be paid for, by Budgets as their status tells.
func (q *payerQuestion) cover(budgets []rqv1.Budget, ask budget.Ask, now time.Time) (*budget.Cover, error) {
	accounts, err := budget.FromStatus(budgets, q.rates)
	if err != nil {
		return nil, err
	}
	accounts.SetBorrowed(ask.Run, q.borrowed())
	return accounts.Cover(ask, now), nil
}

// offer describes an envelope's part; left is what is still to be paid for after it.
func (q *payerQuestion) offer(o *budget.Offer, take budget.Take, left int) offer {
	out := offer{Step: o.Step + 1, Relation: o.Relation, Owner: o.Owner, Budget: o.Key.Budget, Envelope: o.Key.Envelope,
		Selector: q.selector(o.Key), Concurrency: o.Concurrency, UsedGPUs: o.Used, FreeGPUs: max(0, o.Concurrency-o.Used),
		OffersGPUs: o.Pods * q.demand.GPUsPerPod, PaysGPUs: q.pays(o.Key), TakesGPUs: take.Pods * q.demand.GPUsPerPod}
	switch {
	case o.Refusal != "":
		out.Stops = o.Refusal
	case left == 0 && take.Pods > 0:
		out.Stops = "nothing: it pays for all the rest"
	case left == 0:
		out.Stops = "nothing: it is not needed"
	default:
		out.Limit = limitOf(take.Limit)
		out.Stops = take.Limit.String()
		if take.Limit.Left > 0 && out.TakesGPUs == 0 {
			out.Stops += ", less than the next pod takes"
		}
	}
	return out
}

func limitOf(l budget.Limit) *limit {
	out := &limit{Kind: string(l.Kind), Cap: l.Cap, Max: l.Max, Left: l.Left}
	if l.Hours() {
		out.Max, out.Left = l.Max/int64(budget.GPUHour), l.Left/int64(budget.GPUHour)
	}
	return out
}

// others are envelopes that pay for the Run now and would not be asked again (R8).
func (q *payerQuestion) others(cover *budget.Cover) []offer {
	var out []offer
	for i := range q.leases {
		l := &q.leases[i]
		key := budget.Key{Budget: l.Spec.Payer.Budget, Envelope: l.Spec.PaidByEnvelope}
		if slices.ContainsFunc(cover.Offers, func(o budget.Offer) bool { return o.Key == key }) ||
			slices.ContainsFunc(out, func(o offer) bool { return o.Budget == key.Budget && o.Envelope == key.Envelope }) {
			continue
		}
		out = append(out, offer{Relation: l.Relation(), Owner: l.Spec.Payer.Owner, Budget: key.Budget, Envelope: key.Envelope,
			Selector: q.selector(key), PaysGPUs: q.pays(key), Stops: "it would not be asked now; what runs stays"})
	}
	return out
}

// pays is how many of the Run's GPUs an envelope pays for now.
func (q *payerQuestion) pays(key budget.Key) int {
	sum := 0
	for i := range q.leases {
		if l := &q.leases[i]; l.Spec.Payer.Budget == key.Budget && l.Spec.PaidByEnvelope == key.Envelope {
			sum += int(l.GPUs())
		}
	}
	return sum
}

func (q *payerQuestion) selector(key budget.Key) map[string]string {
	for i := range q.budgets {
		for j := range q.budgets[i].Spec.Envelopes {
			if e := &q.budgets[i].Spec.Envelopes[j]; q.budgets[i].Name == key.Budget && e.Name == key.Envelope {
				return e.Selector
			}
		}
	}
	return nil
}

// short says what is short, for people.
func (a *payerAnswer) short() string {
	return fmt.Sprintf("nobody pays for %d of the %d %s GPUs that it needs", a.ShortGPUs, a.HeldGPUs+a.WantedGPUs, a.Flavor)
}

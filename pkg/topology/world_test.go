package topology

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// corners is a Purse that covers every demand below one of its corners: any monotone rule can be stated so.
type corners struct {
	classes map[string]int // by the value of the "team" label, "" when absent; missing means nobody pays
	corners [][]int
	asked   map[string]int
}

func (c *corners) Class(labels map[string]string) int {
	c.asked[labels["team"]]++
	if class, ok := c.classes[labels["team"]]; ok {
		return class
	}
	return -1
}

func (c *corners) Covers(demand []int) bool {
	return slices.ContainsFunc(c.corners, func(corner []int) bool {
		for class, n := range demand {
			if n > 0 && (class >= len(corner) || n > corner[class]) {
				return false
			}
		}
		return true
	})
}

// envelopes is a Purse as the cover planner makes it: each envelope pays for some classes, up to its concurrency in
// pods. Hall's theorem decides: every set of classes must find enough in the envelopes that pay for any of them.
type envelopes struct {
	*corners
	pays [][]bool // by envelope and class
	pods []int    // by envelope
}

func (e *envelopes) Covers(demand []int) bool {
	for set := range 1 << len(demand) {
		need, have := 0, 0
		for class, n := range demand {
			if set>>class&1 == 1 {
				need += n
			}
		}
		for i, pays := range e.pays {
			for class := range demand {
				if set>>class&1 == 1 && class < len(pays) && pays[class] {
					have += e.pods[i]
					break
				}
			}
		}
		if need > have {
			return false
		}
	}
	return true
}

// world is a small fleet and a request, as a test states them.
type world struct {
	levels   []string
	fabric   string
	nodes    []Node
	held     map[string]int
	cpu      map[string]int64 // that pods hold
	ports    map[string]bool  // nodes whose port is taken
	excluded map[string]bool
	request  Request
	purse    *corners // nil when the request has none
}

func (w *world) fleet(order []int) *Fleet {
	f := NewFleet(w.levels, w.fabric)
	f.SetSelectorKeys([]string{"team"})
	for _, i := range order {
		n := w.nodes[i]
		if i%2 == 1 {
			f.SetNode(n)
		}
		f.Take(n.Name, w.held[n.Name])
		f.Burden(n.Name, NewAmounts(map[string]int64{"cpu": w.cpu[n.Name]}), 1)
		if w.ports[n.Name] {
			f.Burden(n.Name, NewAmounts(map[string]int64{port: AllOfAPort}), 1)
		}
		f.SetNode(n)
	}
	return f
}

// port is one that pods may ask for.
var port = Port("TCP", 8080)

// room is how many pods of the request a node has room for.
func (w *world) room(n Node) int {
	pods := max(0, n.GPUs-w.held[n.Name]) / w.request.GPUsPerPod
	if n.Beside == nil {
		return pods
	}
	for _, a := range w.request.Beside.All() {
		switch {
		case a.Resource == "cpu":
			pods = min(pods, int(max(0, n.Beside.All()[0].N-w.cpu[n.Name])/a.N))
		case w.ports[n.Name]:
			pods = 0
		default:
			pods = min(pods, 1)
		}
	}
	return pods
}

func (w *world) inOrder() []int {
	order := make([]int, len(w.nodes))
	for i := range order {
		order[i] = i
	}
	return order
}

func (w *world) path(n Node) []string {
	var path []string
	for _, level := range w.levels {
		path = append(path, n.Labels[level])
		if level == w.fabric {
			break
		}
	}
	return path
}

// legal says whether a node of the world is in the fleet at all, as R11 has it.
func (w *world) legal(n Node) bool {
	for _, level := range w.levels {
		if n.Labels[level] == "" {
			return false
		}
	}
	return n.GPUs > 0 && n.Flavor != ""
}

// drawWorld makes small fleets with at most the given pods wanted.
func drawWorld(t *rapid.T, pods int) *world {
	w := &world{levels: []string{"region", "cluster", "fabric"}, fabric: "fabric", held: map[string]int{},
		cpu: map[string]int64{}, ports: map[string]bool{}, excluded: map[string]bool{}}
	if rapid.Bool().Draw(t, "racks") {
		w.levels = []string{"region", "fabric", "rack"}
	}
	for d := range rapid.IntRange(1, 4).Draw(t, "domains") {
		region := rapid.SampledFrom([]string{"east", "west"}).Draw(t, "region")
		cluster := rapid.SampledFrom([]string{"c", "d"}).Draw(t, "cluster")
		for n := range rapid.IntRange(1, 3).Draw(t, "nodes") {
			w.drawNode(t, fmt.Sprintf("n%d%d", d, n), map[string]string{
				"region": region, "cluster": cluster, "fabric": fmt.Sprint("f", d), "rack": fmt.Sprint("r", n%2),
			})
		}
	}
	w.drawRequest(t, pods)
	if rapid.Bool().Draw(t, "purse") {
		w.drawPurse(t)
	}
	return w
}

func (w *world) drawNode(t *rapid.T, name string, labels map[string]string) {
	n := Node{Name: name, Labels: labels, Flavor: "H100", GPUs: rapid.SampledFrom([]int{4, 4, 4, 2, 1, 3, 6}).Draw(t,
		"gpus")}
	if team := rapid.SampledFrom([]string{"", "a", "a", "b", "c"}).Draw(t, "team"); team != "" {
		labels["team"] = team
	}
	switch rapid.IntRange(0, 15).Draw(t, "oddity") {
	case 0:
		n.Unschedulable = true
	case 1:
		n.Flavor = "A100"
	case 2:
		delete(labels, "fabric")
	case 3:
		w.excluded[name] = true
	case 4:
		n.GPUs = 0
	}
	if rapid.IntRange(0, 3).Draw(t, "known beside") > 0 {
		n.Beside = NewAmounts(map[string]int64{"cpu": rapid.Int64Range(1, 9).Draw(t, "cpu")})
		w.cpu[name] = max(0, rapid.Int64Range(-3, 10).Draw(t, "cpu held"))
		w.ports[name] = rapid.IntRange(0, 5).Draw(t, "port held") == 0
	}
	w.held[name] = max(0, rapid.IntRange(-3, n.GPUs+1).Draw(t, "held"))
	w.nodes = append(w.nodes, n)
}

func (w *world) drawRequest(t *rapid.T, pods int) {
	w.request = Request{
		Flavor:     "H100",
		GPUsPerPod: rapid.SampledFrom([]int{1, 1, 2, 2, 3, 4}).Draw(t, "gpusPerPod"),
		Confined:   rapid.Bool().Draw(t, "confined"),
		OneDomain:  rapid.IntRange(0, 3).Draw(t, "oneDomain") == 0,
	}
	if len(w.excluded) > 0 {
		w.request.Excluded = func(node string) bool { return w.excluded[node] }
	}
	asks := map[string]int64{"cpu": max(0, rapid.Int64Range(-2, 3).Draw(t, "cpu asked for"))}
	if rapid.IntRange(0, 5).Draw(t, "asks for a port") == 0 {
		asks[port] = AllOfAPort
	}
	w.request.Beside = NewAmounts(asks)
	each := rapid.IntRange(1, 4).Draw(t, "each")
	bound := rapid.IntRange(0, 2).Draw(t, "bound") == 0
	for i := 0; pods > 0 && i < 4; i++ {
		g := Group{Index: i, Pods: min(pods, each)}
		if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
			g.Pods = rapid.IntRange(0, min(pods, 3)).Draw(t, "pods")
		}
		if rapid.IntRange(0, 2).Draw(t, "with spares") == 0 && g.Pods > 0 {
			w.drawSpares(t, &g)
		}
		if n := rapid.SampledFrom(w.nodes).Draw(t, "neighbor"); bound && w.legal(n) && n.Flavor == "H100" &&
			rapid.Bool().Draw(t, "binds") {
			g.Domain = strings.Join(w.path(n), "/")
		}
		w.request.Groups = append(w.request.Groups, g)
		pods -= g.size()
		if rapid.IntRange(0, 3).Draw(t, "enough") == 0 {
			break
		}
	}
}

// drawSpares makes some of the group's pods spares, perhaps beside active pods that are there already.
func (w *world) drawSpares(t *rapid.T, g *Group) {
	g.Spares = rapid.IntRange(1, g.Pods).Draw(t, "spares")
	g.Pods -= g.Spares
	if rapid.Bool().Draw(t, "besides") {
		for range rapid.IntRange(1, 2).Draw(t, "how many") {
			g.Beside = append(g.Beside, rapid.SampledFrom(w.nodes).Draw(t, "beside").Name)
		}
	}
}

func (w *world) drawPurse(t *rapid.T) {
	w.purse = &corners{classes: map[string]int{}, asked: map[string]int{}}
	classes := rapid.IntRange(1, 3).Draw(t, "classes")
	for _, team := range []string{"", "a", "b", "c"} {
		if class := rapid.IntRange(-1, classes-1).Draw(t, "class"); class >= 0 {
			w.purse.classes[team] = class
		}
	}
	w.request.Purse = w.purse
	several := rapid.IntRange(1, 3).Draw(t, "several")
	if rapid.Bool().Draw(t, "corners") {
		for range several {
			w.purse.corners = append(w.purse.corners, rapid.SliceOfN(rapid.IntRange(0, 6), classes, classes).Draw(t, "corner"))
		}
		return
	}
	e := &envelopes{corners: w.purse}
	for range several {
		e.pays = append(e.pays, rapid.SliceOfN(rapid.Bool(), classes, classes).Draw(t, "pays"))
		e.pods = append(e.pods, rapid.IntRange(0, 6).Draw(t, "pods"))
	}
	w.request.Purse = e
}

// reference states the world for the brute force.
func (w *world) reference() *reference {
	r := &reference{bound: map[string]int{}, classes: 3, levels: slices.Index(w.levels, w.fabric) + 1,
		covers: func([]int) bool { return true }}
	if w.request.Purse != nil {
		r.covers = w.request.Purse.Covers
	}
	w.referencePieces(r)
	for _, n := range w.nodes {
		if !w.legal(n) || n.Flavor != w.request.Flavor {
			continue
		}
		ref := refNode{name: n.Name, path: w.path(n), held: w.held[n.Name] > 0, usable: !w.excluded[n.Name]}
		if !n.Unschedulable {
			ref.free = max(0, n.GPUs-w.held[n.Name])
			ref.fits = w.room(n)
		}
		if w.purse != nil {
			class, ok := w.purse.classes[n.Labels["team"]]
			if !ok {
				class = -1
			}
			ref.class = class
		}
		r.nodes = append(r.nodes, ref)
	}
	slices.SortStableFunc(r.nodes, func(a, b refNode) int { return slices.Compare(a.path, b.path) })
	return r
}

// referencePieces restates which pods must lie together.
func (w *world) referencePieces(r *reference) {
	common, together := "", 0
	if w.request.OneDomain {
		for _, g := range w.request.Groups {
			if common == "" {
				common = g.Domain
			}
		}
	}
	for _, g := range w.request.Groups {
		switch {
		case g.size() == 0:
		case g.Domain != "":
			r.bound[g.Domain] += g.size()
		case common != "":
			r.bound[common] += g.size()
		case w.request.OneDomain:
			together += g.size()
		case w.request.Confined:
			r.sizes = append(r.sizes, g.size())
		default:
			r.sizes = append(r.sizes, slices.Repeat([]int{1}, g.size())...)
		}
	}
	if together > 0 {
		r.sizes = []int{together}
	}
	slices.Sort(r.sizes)
}

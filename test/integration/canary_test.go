package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

const (
	// brisk is how long it takes at most, on a machine that is fast enough, from a write until a watch tells of it.
	brisk = 250 * time.Millisecond
	// mostSlowness is how many times longer than usual limits are at most.
	mostSlowness = 4
	// sings is how often a canary does.
	sings = time.Second
)

// canary writes to a control plane each second and waits until a watch tells of it, which says how slow it is now.
type canary struct {
	mutex sync.Mutex
	// took is how long it was the last time, and since when it waits now; zero when it does not.
	took  time.Duration
	since time.Time
	// latest are the latest times that it took.
	latest [remembered]time.Duration
	beats  int
}

// remembered is for how many of its beats a canary remembers the slowest.
const remembered = 60

// canaries are those of all control planes that there are.
var canaries struct {
	sync.Mutex
	all []*canary
}

// newCanary starts one; it ends with the process.
func newCanary(kube kubernetes.Interface) *canary {
	c := &canary{}
	canaries.Lock()
	canaries.all = append(canaries.all, c)
	canaries.Unlock()
	go func() {
		for {
			_ = c.sing(kube) // while the API server is away it cannot
			letPass(sings)
		}
	}()
	return c
}

// sing writes and waits again and again, until the API server is away.
func (c *canary) sing(kube kubernetes.Interface) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	of := metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "canary"}
	maps := kube.CoreV1().ConfigMaps(of.Namespace)
	_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: of}, metav1.CreateOptions{})
	tells, watchErr := maps.Watch(ctx, metav1.SingleObject(of))
	if watchErr != nil {
		return fmt.Errorf("%w; %v", watchErr, err)
	}
	defer tells.Stop()
	for beat := 0; ; beat++ {
		text := fmt.Sprint(beat)
		c.begin()
		_, err := maps.Update(ctx, &corev1.ConfigMap{ObjectMeta: of, Data: map[string]string{"beat": text}},
			metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		if err := heard(tells, text); err != nil {
			return err
		}
		c.end()
		letPass(sings)
	}
}

// heard waits until the watch tells what was written.
func heard(tells watch.Interface, text string) error {
	for event := range tells.ResultChan() {
		if m, ok := event.Object.(*corev1.ConfigMap); ok && m.Data["beat"] == text {
			return nil
		}
	}
	return fmt.Errorf("the watch has ended")
}

func (c *canary) begin() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.since = time.Now()
}

func (c *canary) end() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.took, c.since = time.Since(c.since), time.Time{}
	c.latest[c.beats%remembered] = c.took
	c.beats++
}

// slow is how many times longer than it should the control plane takes now: from 1 to mostSlowness.
func (c *canary) slow() float64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	took := c.took
	if !c.since.IsZero() {
		took = max(took, time.Since(c.since))
	}
	return slower(took)
}

// worst is that of the slowest of the last minute.
func (c *canary) worst() float64 {
	now := c.slow()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return max(now, slower(slices.Max(c.latest[:])))
}

// slower is how many times longer than it should something took.
func slower(took time.Duration) float64 {
	return min(max(float64(took)/float64(brisk), 1), mostSlowness)
}

// slowness is that of the slowest control plane of some sites; without any, of the fastest that there is.
func slowness(sites []*site) float64 {
	worst := 1.0
	for _, s := range sites {
		worst = max(worst, s.canary.slow())
	}
	canaries.Lock()
	defer canaries.Unlock()
	if len(sites) > 0 || len(canaries.all) == 0 {
		return worst
	}
	best := float64(mostSlowness)
	for _, c := range canaries.all {
		best = min(best, c.slow())
	}
	return best
}

// waited is one wait of a test.
type waited struct {
	test, what string
	began      time.Time
}

// waits are what is told of them at the end.
var waits struct {
	sync.Mutex
	// stretched are those that took more than twice their limit, and most how many times the worst did.
	stretched int
	most      float64
}

// over notes how a wait ended, of whose limit some is left: in the file that JOBTREE_WAITS names, if it does.
func (w waited) over(limit, left time.Duration) {
	took := time.Since(w.began)
	waits.Lock()
	defer waits.Unlock()
	if times := float64(took) / float64(limit); times > 2 {
		waits.stretched++
		waits.most = max(waits.most, times)
	}
	path := os.Getenv("JOBTREE_WAITS")
	if path == "" || w.test == "" {
		return
	}
	line, err := json.Marshal(map[string]any{"Test": w.test, "What": w.what, "Began": w.began, "Seconds": took.Seconds(),
		"Limit": limit.Seconds(), "Left": left.Seconds()})
	if err != nil {
		panic(err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}

// tellStretched says whether limits were longer than usual for some to be kept: such a run says less.
func tellStretched() {
	waits.Lock()
	defer waits.Unlock()
	if waits.stretched > 0 {
		fmt.Printf("patience was stretched %d times, at most %.1f×\n", waits.stretched, waits.most)
	}
}

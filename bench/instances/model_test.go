// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// example is a cluster of 400 nodes with 10 slots, which the pods fill to 98 %.
func example(mode Mode, n int, prefer Prefer) Config {
	return Config{
		Mode: mode, Instances: n, Nodes: 400, Slots: 10, Pods: 3920, Strategy: Spread, Prefer: prefer, Seed: 1,
		Decision: time.Millisecond, Check: 5 * time.Microsecond, Native: 10 * time.Microsecond,
		Hop: 500 * time.Microsecond, Lag: 2 * time.Millisecond,
	}
}

func play(t *testing.T, c Config) Result {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return Run(c)
}

// Two schedulers that know of each other by a late watch overcommit; the same two with an arbiter never do.
func TestOnlyTheArbiterPreventsOvercommit(t *testing.T) {
	c := example(Uncoordinated, 2, PreferNone)
	c.Strategy, c.Lag = Pack, 80*time.Millisecond
	if r := play(t, c); r.Overcommits == 0 {
		t.Error("two uncoordinated schedulers do not overcommit")
	}
	c.Mode = Shared
	if r := play(t, c); r.Overcommits != 0 || r.Bound != c.Pods || r.Refused == 0 {
		t.Errorf("with an arbiter: %+v", r)
	}
}

// Slow decisions gain from instances, almost as many times as there are; fast ones behind an API server's limit do not.
func TestWhoGains(t *testing.T) {
	slow := func(n int) float64 {
		c := example(Shared, n, PreferOwn)
		c.Decision = 5 * time.Millisecond
		return play(t, c).PerSecond()
	}
	if gain := slow(8) / slow(1); gain < 7 || gain > 8.1 {
		t.Errorf("decisions of 5 ms with 8 instances: %.2f times as many pods", gain)
	}
	fast := func(n int) float64 {
		c := example(Shared, n, PreferOwn)
		c.Decision, c.API = 10*time.Microsecond, 5000
		return play(t, c).PerSecond()
	}
	if gain := fast(8) / fast(1); gain < 0.95 || gain > 1.05 {
		t.Errorf("decisions of 10 µs at an API server's limit with 8 instances: %.2f times as many pods", gain)
	}
}

// Where pods and nodes are hashed, pods of one instance wait beside free slots of another. Preferring own nodes strands
// no pod.
func TestHashedNodesStrandPods(t *testing.T) {
	c := example(Hash, 3, PreferOnly)
	c.Nodes, c.Pods = 99, 980
	if r := play(t, c); r.Stranded == 0 || r.Overcommits != 0 || r.Bound+r.Stranded != c.Pods {
		t.Errorf("hashed nodes: %+v", r)
	}
	c.Mode, c.Prefer = Shared, PreferOwn
	if r := play(t, c); r.Stranded != 0 || r.Bound != c.Pods {
		t.Errorf("shared nodes: %+v", r)
	}
}

// Every run ends, and in each of them: what is bound fits exactly if an arbiter checks it, no pod is lost, and a run
// again gives the same.
func TestRunsKeepTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{
			Mode:      rapid.SampledFrom([]Mode{Shared, Hash, Uncoordinated}).Draw(t, "mode"),
			Instances: rapid.IntRange(1, 6).Draw(t, "instances"),
			Nodes:     rapid.IntRange(6, 20).Draw(t, "nodes"),
			Slots:     rapid.IntRange(1, 5).Draw(t, "slots"),
			Pods:      rapid.IntRange(1, 120).Draw(t, "pods"),
			Strategy:  rapid.SampledFrom([]Strategy{Spread, Pack}).Draw(t, "strategy"),
			Prefer:    rapid.SampledFrom([]Prefer{PreferNone, PreferTies, PreferOwn}).Draw(t, "prefer"),
			Foreign:   rapid.Bool().Draw(t, "foreign"),
			Decision:  time.Duration(rapid.IntRange(1, 1000).Draw(t, "decision")),
			Check:     time.Duration(rapid.IntRange(0, 100).Draw(t, "check")),
			Native:    time.Duration(rapid.IntRange(1, 100).Draw(t, "native")),
			Hop:       time.Duration(rapid.IntRange(0, 1000).Draw(t, "hop")),
			Lag:       time.Duration(rapid.IntRange(0, 5000).Draw(t, "lag")),
			Seed:      rapid.Uint64().Draw(t, "seed"),
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		r := Run(c)
		slots := c.Nodes * c.Slots
		if c.Mode != Uncoordinated && r.Overcommits != 0 || r.Bound > c.Pods {
			t.Fatalf("%+v", r)
		}
		if c.Mode == Shared && r.Bound != min(c.Pods, slots) {
			t.Fatalf("%d of %d pods on %d slots are bound: %+v", r.Bound, c.Pods, slots, r)
		}
		if again := Run(c); !reflect.DeepEqual(r, again) {
			t.Fatalf("two runs differ:\n%+v\n%+v", r, again)
		}
	})
}

// The groups of a view against a count of all nodes.
func TestPickFindsTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, slots := rapid.IntRange(2, 12).Draw(t, "nodes"), rapid.IntRange(1, 4).Draw(t, "slots")
		parts := rapid.IntRange(1, 2).Draw(t, "parts")
		v, random := newView(nodes, slots, parts), rand.New(rand.NewPCG(1, 2))
		for range rapid.IntRange(0, nodes*slots).Draw(t, "taken") {
			if node := int32(rapid.IntRange(0, nodes-1).Draw(t, "node")); int(v.used[node]) < slots {
				v.take(node)
			}
		}
		strategy := rapid.SampledFrom([]Strategy{Spread, Pack}).Draw(t, "strategy")
		best, any := -1, false
		for _, used := range v.used {
			n := int(used)
			if n < slots && (!any || strategy == Spread && n < best || strategy == Pack && n > best) {
				best, any = n, true
			}
		}
		node, ok := v.pick(random, strategy, PreferNone, 0, nil)
		if ok != any || ok && int(v.used[node]) != best {
			t.Fatalf("picked node %d (%v) of %v, want one with %d used slots", node, ok, v.used, best)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The slow twin of the logarithm in integers is that of package math.
func TestNegLog2(t *testing.T) {
	check := func(u uint64) bool {
		want := (64 - math.Log2(float64(max(u, 1)))) * (1 << fractionBits)
		return math.Abs(float64(negLog2(u))-want) <= 2
	}
	for _, u := range []uint64{0, 1, 2, 3, 1 << 32, 1<<63 - 1, 1 << 63, math.MaxUint64} {
		if !check(u) {
			t.Errorf("negLog2(%d) = %d", u, negLog2(u))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		if u := rapid.Uint64().Draw(t, "u"); !check(u) {
			t.Fatalf("negLog2(%d) = %d", u, negLog2(u))
		}
	})
}

// The ranks are part of the protocol: instances of different machines and releases must agree on them.
func TestRanksStayAsTheyAre(t *testing.T) {
	var m Members
	for _, name := range []string{"kumiki-0", "kumiki-1", "kumiki-2"} {
		join(t, &m, name, DefaultWeight)
	}
	got := map[string][]Ordinal{}
	for _, owner := range []string{"default/Deployment/web", "default/Job/train", "ml/PodGroup/g", ""} {
		got[owner] = m.Rank(owner, m.available(nil))
	}
	want := map[string][]Ordinal{
		"default/Deployment/web": {1, 0, 2}, "default/Job/train": {1, 2, 0}, "ml/PodGroup/g": {2, 0, 1}, "": {1, 0, 2},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("ranks:\n%v, want\n%v", got, want)
	}
}

// Fault weightIgnored: a member with twice the weight is the first of twice as many owners.
func TestFirstsFollowTheWeights(t *testing.T) {
	var m Members
	weights := []Weight{500, 1000, 2000, 4500}
	total := Weight(0)
	for i, w := range weights {
		join(t, &m, fmt.Sprint("m", i), w)
		total += w
	}
	const owners = 80000
	firsts := make([]int, len(weights))
	for i := range owners {
		firsts[m.Rank(fmt.Sprint("owner", i), m.available(nil))[0]]++
	}
	for i, n := range firsts {
		want := float64(owners) * float64(weights[i]) / float64(total)
		if math.Abs(float64(n)-want) > 4*math.Sqrt(want) { // four standard deviations, and the same on each machine
			t.Errorf("member %d of weight %d is the first of %d owners, want about %.0f", i, weights[i], n, want)
		}
	}
}

// Fault rankByOrdinal: a member that leaves or joins changes nothing in the order of the others.
func TestOthersKeepTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Members
		n := rapid.IntRange(2, 12).Draw(t, "members")
		for i := range n {
			w := Weight(rapid.IntRange(1, 5000).Draw(t, "weight"))
			if _, err := m.Join(fmt.Sprint("m", i), nil, w); err != nil {
				t.Fatal(err)
			}
		}
		owner := rapid.String().Draw(t, "owner")
		before := m.Rank(owner, m.available(nil))
		gone := Ordinal(rapid.IntRange(0, n-1).Draw(t, "gone"))
		m.Leave(fmt.Sprint("m", gone))
		// The ordinal is given to a newcomer, which must not change the order of the others.
		if _, err := m.Join("newcomer", nil, DefaultWeight); err != nil {
			t.Fatal(err)
		}
		after := m.Rank(owner, m.available(nil))
		others := func(o Ordinal) bool { return o == gone }
		if !slices.Equal(slices.DeleteFunc(before, others), slices.DeleteFunc(after, others)) {
			t.Fatalf("owner %q: %v became %v", owner, before, after)
		}
	})
}

func BenchmarkRank(b *testing.B) {
	for _, n := range []int{2, 8, 64} {
		var m Members
		for i := range n {
			if _, err := m.Join(fmt.Sprint("m", i), nil, DefaultWeight); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Rank("default/Deployment/web", m.available(nil))
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// TestRecentIsTheStoreForWhoeverFollowsIt changes a store at random. Readers that come by now and then copy what a
// Recent has of the rows that changed since; their copies must be the store's columns, and a row may stand but once
// in what one of them reads. Mutants: a row that stands twice, a new resource whose column is short, places that are
// not cut after a drop, asides-uncut, asides-made-once.
func TestRecentIsTheStoreForWhoeverFollowsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, known := NewStore(), specs{}
		r := &Recent{keep: rapid.SampledFrom([]int{0, 8, 64}).Draw(t, "keep")}
		readers := make([]follower, 3)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			change(t, s, known)
			i := rapid.IntRange(0, len(readers)).Draw(t, "reader")
			if i == len(readers) {
				continue
			}
			r.Follow(s.Snapshot())
			readers[i].read(t, s.Snapshot(), r)
		}
	})
}

type follower struct {
	seq  uint64
	rows map[NodeIdx][]int64 // row -> its amounts
}

func amounts(s Snapshot, n NodeIdx) []int64 {
	all := []int64{s.NonZero(0)[n], s.NonZero(1)[n]}
	for id := range s.s.requested {
		all = append(all, s.Requested(resource.ID(id)).At(n), s.Allocatable(resource.ID(id)).At(n))
	}
	return all
}

// cpuTimes is a figure made of what pods on a row ask for.
func cpuTimes(by int64) func(Snapshot, NodeIdx, NodeIdx, []int64) {
	return func(s Snapshot, lo, hi NodeIdx, out []int64) {
		for n := lo; n < hi; n++ {
			out[n] = by * s.NonZero(0)[n]
		}
	}
}

func (f *follower) read(t *rapid.T, s Snapshot, r *Recent) {
	rows, lo, ok := r.Since(f.seq)
	f.seq = r.Next()
	if !ok || f.rows == nil {
		f.rows = map[NodeIdx][]int64{}
		for n := range s.Rows() {
			f.rows[NodeIdx(n)] = amounts(s, NodeIdx(n))
		}
		return
	}
	seen := map[NodeIdx]bool{}
	for i, n := range rows {
		if n == NoNode {
			continue
		}
		if seen[n] {
			t.Fatalf("row %d stands twice", n)
		}
		seen[n] = true
		at := lo + NodeIdx(i)
		f.rows[n] = amounts(r.Columns(), at)
		for _, by := range []int64{1, 3} {
			if got, want := r.Aside(by, cpuTimes(by))[at], by*f.rows[n][0]; got != want {
				t.Fatalf("row %d: %d times its CPU is %d, want %d", n, by, got, want)
			}
		}
	}
	for n := range s.Rows() {
		want, got := amounts(s, NodeIdx(n)), f.rows[NodeIdx(n)]
		for len(got) < len(want) {
			got = append(got, 0) // resources that are new since the row changed last
		}
		if !slices.Equal(got, want) {
			t.Fatalf("row %d: %v, the store has %v", n, got, want)
		}
	}
}

// specs shares the specs of pods with equal requests, as package convert does.
type specs map[string]*PodSpec // requests -> spec

func (m specs) of(requests v1.ResourceList) *PodSpec {
	a := resource.FromList(requests)
	key := fmt.Sprint(a)
	if m[key] == nil {
		m[key] = &PodSpec{Request: a, Held: a, Scored: a, HeldNonZero: [2]int64{a.MilliCPU, DefaultMemory}}
	}
	return m[key]
}

func change(t *rapid.T, s *Store, known specs) {
	name := fmt.Sprint("n", rapid.IntRange(0, 4).Draw(t, "node"))
	amount := v1.ResourceList{v1.ResourceCPU: *apiresource.NewQuantity(int64(rapid.IntRange(1, 9).Draw(t, "cores")),
		apiresource.DecimalSI)}
	if extended := rapid.IntRange(0, 12).Draw(t, "extended"); extended < 3 {
		amount[v1.ResourceName(fmt.Sprint("example.com/x", extended))] = apiresource.MustParse("1")
	}
	uid := UID(fmt.Sprint("u", rapid.IntRange(0, 9).Draw(t, "pod")))
	switch rapid.IntRange(0, 4).Draw(t, "change") {
	case 0:
		s.SetNode(&Node{Name: name, Allocatable: resource.FromList(amount)})
	case 1:
		s.DeleteNode(name)
	case 2:
		s.DeletePod(uid)
	default:
		s.SetPod(&Pod{UID: uid, Name: string(uid), NodeName: name, Spec: known.of(amount)})
	}
}

// TestConfirmingAPodChangesNoRow: the watch's word on a pod that was assumed where it is now costs no cache anything,
// and leaves nothing assumed. Mutants: a row that is touched, an assumed amount that stays.
func TestConfirmingAPodChangesNoRow(t *testing.T) {
	s := NewStore()
	s.SetNode(&Node{Name: "n"})
	pending := &Pod{UID: "u", Name: "p",
		Spec: specs{}.of(v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("2")})}
	s.assume(pending, 0)
	_, before, _ := s.Snapshot().Changes(0)
	bound := *pending
	bound.NodeName, bound.ResourceVersion = "n", "2"
	seen := s.SetPod(&bound)
	_, after, _ := s.Snapshot().Changes(0)
	if seen.Old != pending || !seen.WasAssumed || seen.Elsewhere != "" {
		t.Errorf("confirmed: %+v", seen)
	}
	now, n, assumed, ok := s.Snapshot().PodOn("u")
	if after != before || !ok || assumed || n != 0 || now.ResourceVersion != "2" {
		t.Errorf("%d changes of rows; pod %+v on row %d, assumed %v", after-before, now, n, assumed)
	}
	if cpu, left := s.Snapshot().Requested(0).At(0), s.Snapshot().Assumed(0).At(0); cpu != 2000 || left != 0 {
		t.Errorf("requested %d, assumed of that %d", cpu, left)
	}
}

// TestRecentTakesBoundedMemory: rows with many resources take more, and fewer changes are held. Mutant: a fixed number.
func TestRecentTakesBoundedMemory(t *testing.T) {
	for _, resources := range []int{0, 40, 300} {
		s := NewStore()
		offers := v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("1")}
		for i := range resources {
			offers[v1.ResourceName(fmt.Sprint("example.com/x", i))] = apiresource.MustParse("1")
		}
		s.SetNode(&Node{Name: "n", Allocatable: resource.FromList(offers)})
		r, most := &Recent{}, 0
		r.Follow(s.Snapshot())
		for range recentAtMost + 2 {
			r.add(s, 0)
			most = max(most, len(r.rows))
			if bytes := len(r.rows)*placeBytes + r.bytes; bytes > 2*recentBytes && len(r.rows) > recentAtLeast {
				t.Fatalf("%d resources: %d changes in %d bytes", resources, len(r.rows), bytes)
			}
			if len(r.rows) < most {
				break // half of them were dropped
			}
		}
		if most < recentAtLeast || resources == 0 && most != recentAtMost {
			t.Errorf("%d resources: at most %d changes held", resources, most)
		}
	}
}

// TestAChangeCostsWhatTheRowHas: every node offers a resource of its own; a change of one takes two amounts of
// scalars, whatever there is elsewhere, in the store as in what is recent. Mutant: a column of all rows for each
// resource.
func TestAChangeCostsWhatTheRowHas(t *testing.T) {
	s, known := NewStore(), specs{}
	const nodes = 400
	for i := range nodes {
		offers := v1.ResourceList{v1.ResourceName(fmt.Sprint("example.com/x", i)): apiresource.MustParse("2")}
		s.SetNode(&Node{Name: fmt.Sprint("n", i), Allocatable: resource.FromList(offers)})
	}
	r := &Recent{}
	r.Follow(s.Snapshot())
	for i := range 50 {
		ask := v1.ResourceList{v1.ResourceName(fmt.Sprint("example.com/x", i)): apiresource.MustParse("1")}
		s.SetPod(&Pod{UID: UID(fmt.Sprint(i)), Name: "p", NodeName: fmt.Sprint("n", i), Spec: known.of(ask)})
	}
	r.Follow(s.Snapshot())
	var cells column
	cells.put(0, 1)
	if want := 50 * 2 * cells.size(); r.bytes != want || len(r.rows) != 50 {
		t.Errorf("%d changes take %d bytes of scalars, they have %d", len(r.rows), r.bytes, want)
	}
	held := 0
	for id := resource.Fixed; int(id) < len(s.requested); id++ {
		held += s.allocatable[id].size() + s.requested[id].size()
	}
	if want := (nodes + 50) * cells.size(); held != want {
		t.Errorf("the store takes %d bytes for scalars, there are %d", held, want)
	}
}

// TestAThinColumnIsAFullOne puts amounts at random into a column and into a plain slice, cuts both and gives up rows
// of both. Mutants: rows that are lost when a column becomes full, or when places of rows that have nothing any more
// are given up; a row that is not moved by drop; a cut that leaves what its space held before.
func TestAThinColumnIsAFullOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c column
		plain := make([]int64, rapid.IntRange(1, 400).Draw(t, "rows"))
		space := []int64{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				gone := rapid.IntRange(0, min(3, len(plain)-1)).Draw(t, "gone")
				c.drop(NodeIdx(gone))
				plain = plain[gone:]
			case 1, 2:
				lo := rapid.IntRange(0, len(plain)).Draw(t, "lo")
				hi := rapid.IntRange(lo, len(plain)).Draw(t, "hi")
				if got := (Column{&c}).Cut(NodeIdx(lo), NodeIdx(hi), &space); !slices.Equal(got, plain[lo:hi]) {
					t.Fatalf("rows %d to %d: %v, want %v", lo, hi, got, plain[lo:hi])
				}
			default:
				// Some rows at once, every second, third or fourth of them to nothing, so that columns become full or
				// nearly.
				n, stride := rapid.IntRange(0, len(plain)-1).Draw(t, "row"), rapid.IntRange(1, 7).Draw(t, "stride")
				none := rapid.IntRange(1, 4).Draw(t, "none")
				for range rapid.IntRange(1, 12).Draw(t, "count") {
					amount := int64(n%none) * 7
					c.put(NodeIdx(n), amount)
					plain[n] = amount
					n = (n + stride) % len(plain)
				}
			}
		}
		for n, want := range plain {
			if got := c.get(NodeIdx(n)); got != want {
				t.Fatalf("row %d: %d, want %d", n, got, want)
			}
		}
	})
}

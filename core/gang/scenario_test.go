// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/resources"
	"github.com/kumiki-scheduler/kumiki/record"
)

// tester is a testing.T or what stands in for one.
type tester interface {
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// stories are what gangs go through, one by one.
var stories = map[string]func(t tester){
	"all or nothing":      allOrNothing,
	"extras":              extrasComeAfter,
	"promises":            promisesToMembers,
	"refused":             refusedRowsAreLeft,
	"refusers told":       refusersAreTold,
	"holds":               holdsBelongToMembers,
	"holds given back":    holdsAreGivenBack,
	"large ones first":    largeOnesFirst,
	"near others":         nearOthers,
	"zone for all":        zoneForAll,
	"smallest domain":     smallestDomain,
	"fewest domains":      fewestDomains,
	"fewest on all level": fewestOnAllLevels,
	"domain of bound":     domainOfBound,
	"never":               neverFits,
	"slots":               oneOnEach,
	"gave up":             gaveUp,
	"disks":               disksOfMembers,
	"failed":              failedSearch,
	"best candidate":      inBestCandidate,
	"only candidate":      inOnlyCandidate,
	"tied candidates":     tiedCandidates,
	"no candidate":        inNoCandidate,
	"candidates searched": candidatesSearched,
	"candidates rejected": candidatesRejected,
	"candidates absent":   noCandidates,
}

func TestStories(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) { story(t) })
	}
}

// answer places a gang in a trial that is discarded.
func (w *world) answer(need gang.Need) (a gang.Answer) {
	w.try(need, func(got gang.Answer) { a = got })
	return a
}

// all is the need of a gang of which all members count.
func all(members []*cluster.Pod, topology ...cluster.GangTopology) gang.Need {
	return gang.Need{Members: members, Quorum: len(members), Topology: topology}
}

func cores(n int) map[string]string { return map[string]string{"cpu": fmt.Sprint(n)} }

// allOrNothing: eight members of two cores each fit four nodes of four cores; nine do not, and none of those is
// placed. Mutants: triesKept, quorumShort.
func allOrNothing(t tester) {
	w := newWorld(t)
	for i := range 4 {
		w.node(fmt.Sprintf("n%d", i), nil, nil)
	}
	members := w.members(9, pod("m", cores(2)))
	w.try(all(members[:8]), func(a gang.Answer) {
		if a.Verdict != gang.Placed || w.store.Snapshot().PodCount() != 8 {
			t.Errorf("%v with %d pods placed", a.Verdict, w.store.Snapshot().PodCount())
		}
	})
	w.try(all(members), func(a gang.Answer) {
		if a.Verdict != gang.NeverFits || w.store.Snapshot().PodCount() != 0 || a.Most != 8 || a.Blocked != 8 {
			t.Errorf("%v with %d pods left; %d were placed, then %d was blocked", a.Verdict,
				w.store.Snapshot().PodCount(), a.Most, a.Blocked)
		}
		if want := "0/4 nodes are available: 4 Insufficient cpu."; a.Why.Message != want {
			t.Errorf("told %q, want %q", a.Why.Message, want)
		}
		want := "there is room for at most 8 members, 9 are needed; pods like ns/m-0 have too few nodes"
		if a.Proof != want {
			t.Errorf("proved by %q, want %q", a.Proof, want)
		}
	})
}

// extrasComeAfter: of three members two are required; the one that does not fit stays unplaced, wherever it is in the
// order, and so does the large one if it would take the capacity of two.
func extrasComeAfter(t tester) {
	w := newWorld(t)
	w.node("n0", nil, nil)
	small, large := w.members(2, pod("s", cores(2))), w.members(1, pod("l", cores(4)))
	for at := range 3 {
		need := gang.Need{Members: slices.Insert(slices.Clone(small), at, large[0]), Quorum: 2}
		if a := w.answer(need); a.Verdict != gang.Placed || a.Most != 2 || a.Nodes[at] != cluster.NoNode ||
			a.Blocked != at {
			t.Errorf("large one at %d: %v, %v, blocked %d", at, a.Verdict, a.Nodes, a.Blocked)
		}
	}
}

// promisesToMembers: both members are promised the one node, which holds just the two.
// Mutant: siblingsPromised.
func promisesToMembers(t tester) {
	w := newWorld(t)
	w.node("n0", nil, nil)
	var members []*cluster.Pod
	for i := range 2 {
		p := pod(fmt.Sprintf("m%d", i), cores(2))
		p.Status.NominatedNodeName = "n0"
		members = append(members, w.intake.Pod(p))
	}
	w.noms = members
	if a := w.answer(all(members)); a.Verdict != gang.Placed {
		t.Errorf("%v: %s", a.Verdict, a.Why.Message)
	}
}

// seats is a Reserver that refuses some nodes, and has so many seats, which it counts outside of the store.
type seats struct {
	refused string // node
	left    *int
}

func (seats) Name() string { return "Seats" }

func (r seats) Reserve(t *cluster.Trial, p *cluster.Pod, n cluster.NodeIdx) plugin.Reserved {
	if t.Snapshot().NodeName(n) == r.refused {
		return plugin.Reserved{Reject: "the seat is broken"}
	}
	if *r.left == 0 {
		return plugin.Reserved{Reject: "no seat is left"}
	}
	*r.left--
	return plugin.Reserved{Hold: seat{p.UID, r.left}}
}

type seat struct {
	of   cluster.UID
	left *int
}

func (seat) Writes() []cluster.Write { return nil }
func (seat) Ready(cluster.Snapshot, record.Time) plugin.Readiness {
	return plugin.Readiness{Ready: true}
}
func (s seat) Release(*cluster.Trial, bool) []cluster.Write {
	*s.left++
	return nil
}

// refusedRowsAreLeft: the node that all members like best is refused by a plugin while it reserves; they go to the
// other. Mutant: refusalFinal.
func refusedRowsAreLeft(t tester) {
	w, left := newWorld(t), 9
	w.node("n0", nil, cores(64))
	w.node("n1", nil, nil)
	w.reservers = []plugin.Reserver{seats{"n0", &left}}
	a := w.answer(all(w.members(2, pod("m", cores(2)))))
	if a.Verdict != gang.Placed || a.Nodes[0] != 1 || a.Nodes[1] != 1 || a.Tried != 4 {
		t.Errorf("%v on %v after %d searches: %s", a.Verdict, a.Nodes, a.Tried, a.Why.Message)
	}
	if a = w.answer(all(w.members(3, pod("m", cores(2))))); a.Verdict != gang.GaveUp {
		t.Errorf("%v, though nobody knows what the plugin looks at", a.Verdict)
	}
}

// refusersAreTold: no seat is left, and once a member was refused the second node is too small too. Events of both
// plugins may help. Mutant: refusersUnheard.
func refusersAreTold(t tester) {
	w, left := newWorld(t), 0
	w.node("n0", nil, nil)
	w.node("n1", nil, cores(1))
	w.reservers = []plugin.Reserver{seats{"", &left}}
	a := w.answer(all(w.members(1, pod("m", cores(2)))))
	if a.Verdict != gang.GaveUp || !slices.Equal(a.Plugins, []string{"NodeResourcesFit", "Seats"}) {
		t.Errorf("%v, and %v are told", a.Verdict, a.Plugins)
	}
}

// holdsBelongToMembers: the large member comes last in the unit and is placed first; each has its own hold.
// Mutant: holdsMixed.
func holdsBelongToMembers(t tester) {
	w, left := newWorld(t), 9
	w.node("n0", nil, nil)
	w.node("n1", nil, nil)
	w.reservers = []plugin.Reserver{seats{"", &left}}
	members := w.stairs()
	a := w.answer(all(members))
	if a.Verdict != gang.Placed || a.Order[0] != 3 {
		t.Fatal(fmt.Sprintf("%v in the order %v", a.Verdict, a.Order))
	}
	for i, p := range members {
		if len(a.Holds[i]) != 1 || a.Holds[i][0].By != "Seats" || a.Holds[i][0].Hold.(seat).of != p.UID {
			t.Errorf("member %s holds %v", p.UID, a.Holds[i])
		}
	}
}

// holdsAreGivenBack: there are two seats for three members; none is taken afterwards.
// Mutant: holdsKept.
func holdsAreGivenBack(t tester) {
	w, left := newWorld(t), 2
	w.node("n0", nil, nil)
	w.reservers = []plugin.Reserver{seats{"", &left}}
	if a := w.answer(all(w.members(3, pod("m", cores(1))))); a.Verdict != gang.GaveUp || left != 2 {
		t.Errorf("%v, and %d seats are left", a.Verdict, left)
	} else if want := "0/1 nodes are available: 1 no seat is left."; a.Why.Message != want || a.Blocked != 2 {
		t.Errorf("%d blocked, told %q, want %q", a.Blocked, a.Why.Message, want)
	}
}

// stairs are members of one, two, two and three cores, which two nodes of four cores hold in one way alone.
func (w *world) stairs() []*cluster.Pod {
	return append(append(w.members(1, pod("a", cores(1))), w.members(2, pod("b", cores(2)))...),
		w.members(1, pod("c", cores(3)))...)
}

// largeOnesFirst: in the order of the unit the small ones take both nodes, and the large one has none (H16). The
// third pass finds the places. Mutant: unitOrderOnly.
func largeOnesFirst(t tester) {
	w := newWorld(t)
	w.node("n0", nil, nil)
	w.node("n1", nil, nil)
	if a := w.answer(all(w.stairs())); a.Verdict != gang.Placed || a.Tried > 12 {
		t.Errorf("%v after %d searches", a.Verdict, a.Tried)
	}
}

// near makes a pod that must be in a zone with pods of an app.
func near(p *v1.Pod, app string) *v1.Pod {
	p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: zone}}}}
	return p
}

// apart makes a pod that bears no other of its app in its zone.
func apart(p *v1.Pod, app string) *v1.Pod {
	p.Labels = map[string]string{"app": app}
	p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}, TopologyKey: zone}}}}
	return p
}

// nearOthers: workers must be near their leader, who comes after them in the unit; and the leader must not take the
// zone that is too small for them. Mutant: affinityFirst.
func nearOthers(t tester) {
	w := newWorld(t)
	w.node("n0", map[string]string{zone: "a"}, cores(8))
	w.node("n1", map[string]string{zone: "b"}, cores(4))
	w.node("n2", map[string]string{zone: "b"}, cores(4))
	w.node("n3", map[string]string{zone: "b"}, cores(4))
	leader := pod("leader", cores(1))
	leader.Labels = map[string]string{"app": "leader"}
	need := all(append(w.members(3, near(pod("worker", cores(3)), "leader")), w.members(1, leader)...))
	if a := w.answer(need); a.Verdict != gang.Placed || slices.Contains(a.Nodes, 0) {
		t.Errorf("%v on %v: %s", a.Verdict, a.Nodes, a.Why.Message)
	}
}

// zoneForAll: members must be near each other; the zone with the best node is too small for them all.
// Mutant: nobodyTogether.
func zoneForAll(t tester) {
	w := newWorld(t)
	w.node("best", map[string]string{zone: "a"}, cores(8))
	for i := range 12 {
		w.node(fmt.Sprintf("n%d", i), map[string]string{zone: []string{"b", "c"}[i%2]}, cores(2+i%2))
	}
	like := near(pod("m", cores(1)), "m")
	like.Labels = map[string]string{"app": "m"}
	if a := w.answer(all(w.members(16, like))); a.Verdict != gang.Placed || slices.Contains(a.Nodes, 0) {
		t.Errorf("%v on %v after %d searches: %s", a.Verdict, a.Nodes, a.Tried, a.Why.Message)
	}
}

// racks makes nodes of one core, so many in each rack, named zone/rack.
func (w *world) racks(sizes map[string]int) {
	for name, size := range sizes {
		z, _, _ := strings.Cut(name, "/")
		for i := range size {
			w.node(fmt.Sprintf("%s-%d", strings.ReplaceAll(name, "/", "-"), i),
				map[string]string{zone: z, rack: name}, cores(1))
		}
	}
}

// smallestDomain: both racks hold the gang; the larger one stays whole.
// Mutant: roomiestFirst.
func smallestDomain(t tester) {
	w := newWorld(t)
	w.racks(map[string]int{"a/small": 3, "a/large": 8, "b/fit": 4})
	a := w.answer(all(w.members(4, pod("m", cores(1))), cluster.GangTopology{Key: rack, Required: true}))
	if a.Verdict != gang.Placed || !slices.Equal(a.Domains, []string{"b/fit"}) || a.Tried != 4 {
		t.Errorf("%v in %v after %d searches", a.Verdict, a.Domains, a.Tried)
	}
}

// fewestDomains: no rack holds six members; two do, the one that holds the most and the one that just holds the rest.
// Mutant: preferredIgnored.
func fewestDomains(t tester) {
	w := newWorld(t)
	w.racks(map[string]int{"a/1": 3, "a/2": 4, "a/3": 2, "a/4": 1})
	a := w.answer(all(w.members(6, pod("m", cores(1))), cluster.GangTopology{Key: rack}))
	if a.Verdict != gang.Placed || !slices.Equal(a.Domains, []string{"a/2", "a/3"}) {
		t.Errorf("%v in %v", a.Verdict, a.Domains)
	}
	if a = w.answer(all(w.members(10, pod("m", cores(1))),
		cluster.GangTopology{Key: rack})); a.Verdict != gang.Placed || len(a.Domains) != 4 {
		t.Errorf("all of them: %v in %v", a.Verdict, a.Domains)
	}
}

// fewestOnAllLevels: both zones hold the gang, but only one has a rack that does.
// Mutant: levelsIgnored.
func fewestOnAllLevels(t tester) {
	w := newWorld(t)
	w.racks(map[string]int{"a/1": 3, "a/2": 3, "b/1": 6, "b/2": 6})
	a := w.answer(all(w.members(6, pod("m", cores(1))), cluster.GangTopology{Key: zone},
		cluster.GangTopology{Key: rack}))
	if a.Verdict != gang.Placed || len(a.Domains) != 1 {
		t.Errorf("%v in %v", a.Verdict, a.Domains)
	}
}

// domainOfBound: a lost member is replaced where the others are, and nowhere else.
// Mutant: boundElsewhere.
func domainOfBound(t tester) {
	w := newWorld(t)
	w.racks(map[string]int{"a/1": 2, "a/2": 4})
	n, _ := w.store.Snapshot().Find("a-1-0")
	old := pod("old", cores(1))
	old.Spec.NodeName = "a-1-0"
	w.store.SetPod(w.intake.Pod(old))
	for count, want := range map[int]gang.Verdict{1: gang.Placed, 2: gang.Unschedulable} {
		need := all(w.members(count, pod("m", cores(1))), cluster.GangTopology{Key: rack, Required: true})
		need.Bound = []cluster.NodeIdx{n}
		if a := w.answer(need); a.Verdict != want || want == gang.Placed && !slices.Equal(a.Domains, []string{"a/1"}) {
			t.Errorf("%d more: %v in %v", count, a.Verdict, a.Domains)
		}
	}
}

// Each node takes one pod, whatever it offers and pods ask for.
func oneOnEach(t tester) {
	w := newWorld(t)
	prof := profile(t)
	for i, f := range prof.Filters {
		if f.Name() == resources.NodeResourcesFitName {
			prof.Filters[i] = resources.NodeSlots{}
		}
	}
	w.placer = place.New(prof, noMeter{}, place.DefaultClassBytes)
	for i := range 3 {
		w.node(fmt.Sprint("n", i), nil, map[string]string{"cpu": "1"})
	}
	const proof = "there is room for at most 3 members, 4 are needed; pods like ns/m-0 have too few nodes"
	if a := w.answer(all(w.members(4, pod("m", cores(9))))); a.Verdict != gang.NeverFits || a.Proof != proof {
		t.Errorf("four on three nodes: %v, %q", a.Verdict, a.Proof)
	}
	if a := w.answer(all(w.members(3, pod("m", cores(9))))); a.Verdict != gang.Placed {
		t.Errorf("three on three nodes: %v, %q", a.Verdict, a.Why.Message)
	}
	old := pod("old", nil)
	old.Spec.NodeName = "n1"
	w.store.SetPod(w.intake.Pod(old))
	if a := w.answer(all(w.members(3, pod("m", nil)))); a.Verdict != gang.Unschedulable || a.Most != 2 {
		t.Errorf("three on two free nodes: %v, %d placed", a.Verdict, a.Most)
	}
}

// neverFits: what is proved, and in which words; a full cluster proves nothing.
// Mutants: neverIsNow, apartByNode, unprovedNever.
func neverFits(t tester) {
	w := newWorld(t)
	w.racks(map[string]int{"a/1": 4, "b/1": 2})
	w.node("big", map[string]string{zone: "b", rack: "b/1"}, map[string]string{"cpu": "8", "memory": "8Gi"})
	required := cluster.GangTopology{Key: rack, Required: true}
	mixed := func(large, small int) []*cluster.Pod {
		return append(w.members(large, pod("l", cores(5))), w.members(small, pod("s", cores(1)))...)
	}
	for name, c := range map[string]struct {
		need  gang.Need
		proof string // empty when nothing is proved
	}{
		"one member too large": {all(w.members(1, pod("m", cores(9)))),
			"there is room for at most 0 members, 1 are needed; pods like ns/m-0 have too few nodes"},
		"too many large ones": {all(mixed(2, 1)),
			"there is room for at most 2 members, 3 are needed; pods like ns/l-0 have too few nodes"},
		"too much in all": {all(mixed(1, 10)), "11 members ask for at least 15000 of cpu, and there is 14000"},
		"apart": {all(w.members(3, apart(pod("m", cores(1)), "x"))),
			"there is room for at most 2 members, 3 are needed; pods like ns/m-0 have too few nodes"},
		"no rack": {all(w.members(11, pod("m", cores(1))), required),
			"no domain of rack is large enough; in b/1 there is room for at most 10 members, 11 are needed; " +
				"pods like ns/m-0 have too few nodes"},
		"no label": {all(w.members(1, pod("m", cores(1))), cluster.GangTopology{Key: "block", Required: true}),
			"no node has the labels block"},
		"room": {all(mixed(1, 9)), ""},
	} {
		if a := w.answer(c.need); a.Proof != c.proof || (a.Verdict == gang.NeverFits) != (c.proof != "") {
			t.Errorf("%s: %v, %q", name, a.Verdict, a.Proof)
		}
	}
	old := pod("old", cores(8))
	old.Spec.NodeName = "big"
	w.store.SetPod(w.intake.Pod(old))
	for name, need := range map[string]gang.Need{"full": all(mixed(1, 6)),
		"full rack": all(w.members(5, pod("m", cores(1))), required)} {
		if a := w.answer(need); a.Verdict != gang.Unschedulable || a.Why.Message == "" || a.Blocked < 0 {
			t.Errorf("%s: %v, %d blocked: %s %s", name, a.Verdict, a.Blocked, a.Why.Message, a.Proof)
		}
	}
	if a := newWorld(t).answer(all(w.members(1, pod("m", nil)))); a.Verdict != gang.Unschedulable {
		t.Errorf("without nodes: %v", a.Verdict)
	}
	if a := w.answer(gang.Need{Members: w.members(1, pod("m", nil)), Quorum: 2}); a.Verdict != gang.Unschedulable {
		t.Errorf("with too few members: %v", a.Verdict)
	}
}

// gaveUp: there are placements, but not within the few allowed searches; the number of searches is reported.
func gaveUp(t tester) {
	w := newWorld(t)
	w.node("n0", nil, nil)
	w.node("n1", nil, nil)
	need := all(append(w.members(2, pod("s", cores(2))), w.members(1, pod("l", cores(4)))...))
	need.Budget = 1
	if a := w.answer(need); a.Verdict != gang.GaveUp || a.Tried != 3 || a.Most != 2 || a.Blocked != 2 {
		t.Errorf("%v after %d searches, %d placed, %d blocked", a.Verdict, a.Tried, a.Most, a.Blocked)
	}
}

// failedSearch: a member that a plugin cannot judge fails the attempt.
func failedSearch(t tester) {
	w := newWorld(t)
	w.node("n0", nil, nil)
	w.reservers = []plugin.Reserver{breaks{}}
	if a := w.answer(all(w.members(2, pod("m", cores(1))))); a.Verdict != gang.Failed || a.Err == nil ||
		a.Err.Error() != `member ns/m-0: running Reserve plugin "Breaks": it broke` {
		t.Errorf("%v: %v", a.Verdict, a.Err)
	}
}

type breaks struct{}

func (breaks) Name() string { return "Breaks" }
func (breaks) Reserve(*cluster.Trial, *cluster.Pod, cluster.NodeIdx) plugin.Reserved {
	return plugin.Reserved{Err: fmt.Errorf("it broke")}
}

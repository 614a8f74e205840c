// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/release"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// What a run of the tests compares if the environment does not say otherwise.
const (
	defaultCases = 4000
	defaultSeed  = 20261121
)

// question is one pod that is decided about on both sides.
type question struct {
	*world
	seen map[string]int // kind of answer -> how often
	pod  *v1.Pod
	ours *cluster.Pod

	state  fwk.CycleState
	filter plugin.PodFilter
	fit    []string // the nodes that fit
}

func (a *question) fatalf(format string, args ...any) {
	a.t.Helper()
	a.t.Fatalf("%s\npod %+v", fmt.Sprintf(format, args...), a.pod.Spec)
}

// The whole way of a pod through the plugin is upstream's: what keeps it back, verdicts and scores, the devices
// that are reserved, what is written, and what the next pod sees of all that.
func TestPodsLikeUpstream(t *testing.T) {
	cases := sampling.Cases(t, defaultCases)
	enough := min(100, cases/40)
	seen := podsLikeUpstream(t, cases)
	for _, must := range []string{"gated", "rejected", "failed", "fits", "never", "scored", "reserved", "written", "made", "mapped", "released", "freed", "deleted"} {
		if seen[must] < enough {
			t.Errorf("%q happened %d times: the cases say too little", must, seen[must])
		}
	}
}

// The same for the release before, and with single features off. Extended resources are not turned off by kumiki.
func TestPodsLikeUpstreamEmulated(t *testing.T) {
	for _, flags := range []string{
		"--emulated-version=1.36",
		"--emulated-version=1.35 --feature-gates=DRAExtendedResource=true",
		"--emulated-version=1.36 --feature-gates=DRAPrioritizedList=false",
		"--emulated-version=1.36 --feature-gates=DRAResourceClaimDeviceStatus=false," +
			"DRAResourceClaimGranularStatusAuthorization=false,DRADeviceBindingConditions=false",
		"--emulated-version=1.35 --feature-gates=DRAExtendedResource=true,DRAAdminAccess=false",
		"--feature-gates=DRADeviceTaints=false,DRADeviceTaintRules=false",
		"--feature-gates=DRAConsumableCapacity=false",
		"--min-compatibility-version=1.37",
		"--feature-gates=DRAPartitionableDevices=false",
	} {
		t.Run(flags, func(t *testing.T) {
			release.Emulate(t, strings.Fields(flags)...)
			// For 1.35, upstream would pick its stable allocator, which goes through pools in map order.
			structured.EnableAllocators("incubating")
			t.Cleanup(func() { structured.EnableAllocators() })
			if seen := podsLikeUpstream(t, sampling.Cases(t, defaultCases)/10); seen["reserved"] < 20 || seen["never"] < 20 {
				t.Errorf("the cases say too little: %v", seen)
			}
		})
	}
}

// podsLikeUpstream compares generated cases and counts the answers: kind of answer -> how often.
func podsLikeUpstream(t *testing.T, cases int) map[string]int {
	oracle.New().Close() // sets upstream's metrics up
	seed := sampling.SeedOr(t, defaultSeed)
	seen := map[string]int{}
	for i := range cases {
		w := newWorld(t, &maker{Rand: rand.New(rand.NewPCG(seed, uint64(i))), taken: map[string]bool{}})
		for k := range 4 {
			pod, claims := w.m.pod(fmt.Sprintf("p%d", k), k)
			if k == 3 {
				pod, claims = w.m.pod("pending", k)
			}
			for _, c := range claims {
				w.api.put(c)
			}
			if w.m.chance(4) {
				w.api.put(w.m.stale(pod, fmt.Sprintf("stale%d", k)))
			}
			switch m := w.m; {
			case m.chance(15):
				w.api.put(m.rule(m.IntN(3)))
			case m.chance(15):
				w.api.removeRule(fmt.Sprintf("rule%d", m.IntN(3)))
			}
			a := &question{world: w, seen: seen, pod: pod, ours: w.in.Pod(pod)}
			if a.gated() || a.rejected() {
				continue
			}
			if a.judge(); a.filter == nil {
				continue
			}
			a.score()
			if len(a.fit) == 0 {
				a.remedy()
				continue
			}
			a.reserve(one(w.m, a.fit...))
		}
		if t.Failed() {
			t.Fatalf("case %d of seed %d", i, seed)
		}
	}
	t.Logf("%d cases of seed %d: %v", cases, seed, seen)
	return seen
}

func (a *question) gated() bool {
	up := a.up.PreEnqueue(context.Background(), a.pod)
	reason, ok := a.world.ours.Gated(a.store.Snapshot(), a.ours)
	if up.IsSuccess() != ok || !ok && up.Message() != reason {
		a.fatalf("kept back by kumiki with %q (open: %v), by upstream with %v", reason, ok, up)
	}
	if !ok {
		a.seen["gated"]++
	}
	return !ok
}

func (a *question) rejected() bool {
	a.state = framework.NewCycleState()
	_, up := a.up.PreFilter(context.Background(), a.state, a.pod, nil)
	plan := a.world.ours.PrepareFilter(a.store.Snapshot(), a.ours)
	a.filter = plan.Filter
	ours := "fits"
	switch {
	case plan.Err != nil:
		ours = "error: " + plan.Err.Error()
	case plan.Reject != "":
		ours = "never: " + plan.Reject
	case plan.Filter == nil:
		ours = "skip"
	}
	if words := wordsOf(up); words != ours {
		a.fatalf("PreFilter: kumiki %q, upstream %q", ours, words)
	}
	if plan.Reject != "" {
		a.seen["rejected"]++
		a.remedy()
	}
	return plan.Filter == nil
}

func wordsOf(st *fwk.Status) string {
	switch st.Code() {
	case fwk.Success:
		return "fits"
	case fwk.Skip:
		return "skip"
	case fwk.Error:
		return "error: " + st.AsError().Error()
	case fwk.UnschedulableAndUnresolvable:
		return "never: " + st.Message()
	}
	return st.Code().String() + ": " + st.Message()
}

// judge compares verdicts on each node, by both forms. A failure ends the attempt; which node's comes first is a
// matter of order.
func (a *question) judge() {
	s := a.store.Snapshot()
	up, failures := map[string]string{}, []string{}
	for _, name := range a.m.nodes {
		st := a.up.Filter(context.Background(), a.state, a.pod, a.info(name))
		up[name] = wordsOf(st)
		if st.Code() == fwk.Error {
			failures = append(failures, up[name])
		}
	}
	out := make([]plugin.Verdict, s.Rows())
	a.filter.Column(s, 0, cluster.NodeIdx(len(out)), plugin.TagOf(0), out)
	if err := a.filter.(plugin.Failing).Failed(); err != nil || len(failures) > 0 {
		if err == nil || !slices.Contains(failures, "error: "+err.Error()) {
			a.fatalf("kumiki fails with %v, upstream with %q", err, failures)
		}
		a.seen["failed"]++
		a.filter = nil
		return
	}
	for _, name := range a.m.nodes {
		n, _ := s.Find(name)
		ours := a.say(out[n].Code())
		if plain := a.say(a.filter.Plain(s, s.View(n))); plain != ours {
			a.fatalf("%s: plain form %q, column form %q", name, plain, ours)
		}
		if ours != up[name] {
			a.fatalf("%s: kumiki %q, upstream %q", name, ours, up[name])
		}
		if ours == "fits" {
			a.fit = append(a.fit, name)
			a.seen["fits"]++
		} else {
			a.seen["never"]++
		}
	}
}

func (a *question) say(c plugin.Code) string {
	if c == plugin.Fit {
		return "fits"
	}
	return "never: " + a.filter.Reasons(c)[0]
}

func (a *question) score() {
	if len(a.fit) < 2 || !release.Features().DRAPrioritizedList { // without it, kumiki's profile does not score by devices
		return
	}
	s := a.store.Snapshot()
	var rows []cluster.NodeIdx
	list := fwk.NodeScoreList{}
	var up []int64
	for _, name := range a.fit {
		n, _ := s.Find(name)
		rows = append(rows, n)
		raw, st := a.up.Score(context.Background(), a.state, a.pod, a.info(name))
		if !st.IsSuccess() {
			a.fatalf("upstream's score of %s: %v", name, st)
		}
		list, up = append(list, fwk.NodeScore{Name: name, Score: raw}), append(up, raw)
	}
	a.up.NormalizeScore(context.Background(), a.state, a.pod, list)
	score, err := a.world.ours.PrepareUncached(s, a.ours, rows)
	if err != nil {
		a.fatalf("score: %v", err)
	}
	raw := make([]int64, len(rows))
	if score != nil {
		score.Rows(s, rows, raw)
		a.seen["scored"]++
	}
	normalised := slices.Clone(raw)
	if score != nil {
		score.Normalize(s, rows, normalised)
	}
	for i := range rows {
		if raw[i] != up[i] || normalised[i] != list[i].Score {
			a.fatalf("scores: kumiki %v, %v, upstream %v, %v", raw, normalised, up, list)
		}
	}
}

// remedy compares what is freed when a pod fits nowhere, and lets upstream do it.
func (a *question) remedy() {
	writes, message := a.world.ours.Remedy(a.store.Snapshot(), a.ours)
	before := a.api.version
	if _, up := a.up.PostFilter(context.Background(), a.state, a.pod, nil); up.Message() != message {
		a.fatalf("remedy: kumiki %q, upstream %q", message, up.Message())
	}
	for _, wr := range writes {
		switch wr := wr.(type) {
		case cluster.ReleaseClaim:
			// Upstream frees any of the claims that are out of reach, kumiki the first.
			a.seen["freed"]++
			if !wr.Deallocate || before == a.api.version {
				a.fatalf("kumiki frees %+v", wr)
			}
		case cluster.DeleteClaim:
			a.seen["deleted"]++
			if a.api.claim(wr.Namespace, wr.Name) != nil {
				a.fatalf("kumiki deletes %s, upstream does not", wr.Name)
			}
		}
	}
	if len(writes) == 0 {
		a.seen[message]++
	}
}

// reserve compares the devices that are taken, and then lets the pod fail, or its claims be written, or leaves it
// on its way.
func (a *question) reserve(node string) {
	ctx := context.Background()
	got := a.take(node)
	fate := a.m.IntN(3)
	if fate == 0 {
		a.up.Unreserve(ctx, a.state, a.pod, node)
		a.release(got, false)
		a.seen["released"]++
		return
	}
	var writes []cluster.Write
	if got.Hold != nil {
		writes = got.Hold.Writes()
	}
	waits := a.samePending(writes)
	if fate == 1 && !waits && !a.write(node, writes) {
		// As the framework does. Without it, upstream counts the devices of the claims that it has written twice.
		a.up.Unreserve(ctx, a.state, a.pod, node)
		a.release(got, true)
	}
}

// release ends the attempt on kumiki's side. It returns what is to be undone of what was written.
func (a *question) release(got plugin.Reserved, written bool) (undo []cluster.Write) {
	a.txn(func() {
		if got.Hold != nil {
			t := a.store.Trial()
			undo = got.Hold.Release(t, written)
			t.Commit()
		}
		a.store.Forget(a.ours.UID)
	})
	return undo
}

// take reserves the devices on both sides.
func (a *question) take(node string) plugin.Reserved {
	ctx := context.Background()
	if st := a.up.Reserve(ctx, a.state, a.pod, node); !st.IsSuccess() {
		a.fatalf("upstream's Reserve: %v", st)
	}
	var got plugin.Reserved
	a.txn(func() {
		t := a.store.Trial()
		n, _ := a.store.Snapshot().Find(node)
		t.Assume(a.ours, n)
		got = a.world.ours.Reserve(t, a.ours, n)
		t.Commit()
	})
	if got.Err != nil || got.Reject != "" {
		a.fatalf("kumiki's Reserve: %q %v", got.Reject, got.Err)
	}
	a.seen["reserved"]++
	return got
}

// samePending compares what upstream holds in memory with what is to be written. It reports whether the pod waits.
func (a *question) samePending(writes []cluster.Write) (waits bool) {
	for _, wr := range writes {
		var ours *resourceapi.AllocationResult
		switch wr := wr.(type) {
		case cluster.AllocateClaim:
			up := a.manager.ResourceClaims().GetPendingAllocation(a.api.claim(wr.Namespace, wr.Name).UID)
			if ours = wr.Allocation; !reflect.DeepEqual(bare(up), bare(ours)) {
				a.fatalf("claim %s: kumiki takes %+v, upstream %+v", wr.Name, ours, up)
			}
			if ours == nil {
				ours = a.api.claim(wr.Namespace, wr.Name).Status.Allocation
			}
		case cluster.CreateClaim:
			ours = wr.Claim.Status.Allocation
		}
		waits = waits || hasConditions(ours)
		for _, r := range ours.Devices.Results {
			a.m.taken[r.Pool+"/"+r.Device] = true
		}
	}
	return waits || a.namesConditions()
}

func hasConditions(a *resourceapi.AllocationResult) bool {
	return slices.ContainsFunc(a.Devices.Results, func(r resourceapi.DeviceRequestAllocationResult) bool { return len(r.BindingConditions) > 0 })
}

// namesConditions reports whether some claim of the pod that is allocated already has to be waited for.
func (a *question) namesConditions() bool {
	for i := range a.pod.Spec.ResourceClaims {
		if name := a.pod.Spec.ResourceClaims[i].ResourceClaimName; name != nil {
			if c := a.api.claim(ns, *name); c != nil && c.Status.Allocation != nil && hasConditions(c.Status.Allocation) {
				return true
			}
		}
	}
	return false
}

// bare is an allocation without what is drawn at random or read from a clock.
func bare(a *resourceapi.AllocationResult) *resourceapi.AllocationResult {
	if a == nil {
		return nil
	}
	a = a.DeepCopy()
	a.AllocationTimestamp = nil
	for i := range a.Devices.Results {
		if a.Devices.Results[i].ShareID != nil {
			a.Devices.Results[i].ShareID = new(*a.Devices.Results[i].ShareID)
			*a.Devices.Results[i].ShareID = "some"
		}
	}
	return a
}

// write lets upstream write, and compares what the API server has then with what kumiki asks for. It reports whether
// upstream's PreBind succeeded.
func (a *question) write(node string, writes []cluster.Write) bool {
	a.api.named = nil
	before := a.api.version
	st := a.up.PreBind(context.Background(), a.state, a.pod, node)
	if !st.IsSuccess() {
		// Upstream makes a claim without requests for a pod with other claims where the node itself offers the
		// resource, and then fails for want of anything to say in the pod's status. Kumiki makes none.
		if st.AsError().Error() == fmt.Sprintf("nil or empty request mappings, no update of pod %s/%s ExtendedResourceClaimStatus", ns, a.pod.Name) {
			a.seen["known difference"]++
			return false
		}
		a.fatalf("upstream's PreBind: %v", st)
	}
	if before == a.api.version && len(writes) > 0 {
		a.fatalf("kumiki writes %+v, upstream nothing", writes)
	}
	for _, wr := range writes {
		switch wr := wr.(type) {
		case cluster.AllocateClaim:
			up := a.api.claim(wr.Namespace, wr.Name)
			if wr.Allocation != nil && !reflect.DeepEqual(bare(up.Status.Allocation), bare(wr.Allocation)) || up.Status.ReservedFor[len(up.Status.ReservedFor)-1] != wr.ReservedFor {
				a.fatalf("claim %s: kumiki writes %+v, upstream %+v", wr.Name, wr, up.Status)
			}
			a.seen["written"]++
		case cluster.CreateClaim:
			a.made(wr)
		}
	}
	return true
}

func (a *question) made(wr cluster.CreateClaim) {
	up := a.api.claim(ns, a.pod.Name+"-extended-resources-made")
	switch {
	case up == nil:
		a.fatalf("kumiki makes %+v, upstream nothing", wr.Claim)
	case !reflect.DeepEqual(up.Spec, wr.Claim.Spec), !reflect.DeepEqual(up.Annotations, wr.Claim.Annotations),
		!reflect.DeepEqual(up.OwnerReferences, wr.Claim.OwnerReferences), up.GenerateName != wr.Claim.GenerateName:
		a.fatalf("kumiki makes %+v, upstream %+v", wr.Claim, up)
	case !reflect.DeepEqual(bare(up.Status.Allocation), bare(wr.Claim.Status.Allocation)), !reflect.DeepEqual(up.Status.ReservedFor, wr.Claim.Status.ReservedFor):
		a.fatalf("kumiki allocates %+v, upstream %+v", wr.Claim.Status, up.Status)
	}
	a.seen["made"]++
	for i, m := range a.api.named.RequestMappings {
		if i >= len(wr.Mappings) || wr.Mappings[i] != (cluster.ExtendedMapping{Container: m.ContainerName, Resource: m.ResourceName, Request: m.RequestName}) {
			a.fatalf("kumiki maps %+v, upstream %+v", wr.Mappings, a.api.named.RequestMappings)
		}
		a.seen["mapped"]++
	}
	if len(wr.Mappings) != len(a.api.named.RequestMappings) {
		a.fatalf("kumiki maps %+v, upstream %+v", wr.Mappings, a.api.named.RequestMappings)
	}
	// The claim is there under upstream's name; kumiki's is not to be made any more.
	a.txn(func() {
		t := a.store.Trial()
		t.RestoreObject(cluster.KindDeviceClaim, cluster.ObjectKey{Namespace: ns, Name: wr.Claim.Name})
		t.Commit()
	})
	if metav1.GetControllerOf(up) == nil {
		a.fatalf("upstream's claim has no owner")
	}
}

// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	componentmetrics "k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/gangapi"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
)

// statuses is a GangWriter with an API server of our own making that has one object, ns/g, of one source. It keeps the
// rules about versions and subresources.
type statuses struct {
	*GangWriter
	reg componentmetrics.KubeRegistry

	mu      sync.Mutex
	source  cluster.GangSource
	served  string                     // the version of the API
	version string                     // the version in which the watch reads
	object  *unstructured.Unstructured // nil when it is gone
	seen    *cluster.Gang              // as the watch has it; nil: as it is
	patches int                        // that were carried out
	calls   int
	// subresource tells that the status is a resource of its own.
	subresource bool
	// fail is asked before each patch, lose after it was carried out.
	fail, lose func(call int) error
}

var groupResource = schema.GroupResource{Resource: "podgroups"}

// writing runs a scenario with a gang of three.
func writing(t *testing.T, source cluster.GangSource, scenario func(s *statuses)) {
	synctest.Test(t, func(t *testing.T) {
		s := &statuses{source: source, subresource: source != cluster.GangOfVolcano}
		text := map[cluster.GangSource]string{
			cluster.GangOfGroup:   "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, spec: {schedulingPolicy: {gang: {minCount: 3}}}}",
			cluster.GangOfSigs:    "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, spec: {minMember: 3}}",
			cluster.GangOfVolcano: "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, spec: {minMember: 3}}",
		}[source]
		s.object = kubetest.GangObject(t, text)
		s.object.SetResourceVersion("1")
		s.served = s.object.GroupVersionKind().Version
		s.version = s.served
		objects := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
		objects.PrependReactor("*", "podgroups", func(a clienttesting.Action) (bool, runtime.Object, error) {
			o, err := s.answer(a)
			return true, o, err
		})
		var m *metrics.Metrics
		m, s.reg = counted()
		s.GangWriter = NewGangWriter(t.Context(), fake.NewClientset(), objects, s.watched, s.versionOf, m)
		scenario(s)
		s.Drain(call.Expired())
	})
}

func (s *statuses) watched(cluster.GangKey) *cluster.Gang {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen != nil || s.object == nil {
		return s.seen
	}
	return s.read()
}

// read converts the object as it is now. s.mu must be held.
func (s *statuses) read() *cluster.Gang {
	return gangapi.PodGroup(s.object)
}

// versionOf is the version of the API in which the object is read.
func (s *statuses) versionOf(cluster.GangSource) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// freeze leaves the watch where it is.
func (s *statuses) freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = s.read()
}

func (s *statuses) answer(a clienttesting.Action) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := apierrors.NewNotFound(groupResource, "g")
	if a.GetResource().Version != s.served {
		s.version = s.served // the watch broke as well, and came back
		return nil, gone
	}
	if a.GetVerb() == "get" {
		if s.object == nil {
			return nil, gone
		}
		return s.object.DeepCopy(), nil
	}
	patch := a.(clienttesting.PatchAction)
	s.calls++
	if s.fail != nil {
		if err := s.fail(s.calls); err != nil {
			return nil, err
		}
	}
	var body struct {
		Metadata struct{ UID, ResourceVersion string }
		Status   map[string]any
	}
	if err := json.Unmarshal(patch.GetPatch(), &body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	switch {
	case s.object == nil, patch.GetSubresource() == "status" && !s.subresource:
		return nil, gone
	case body.Metadata.UID != string(s.object.GetUID()), body.Metadata.ResourceVersion != s.object.GetResourceVersion():
		return nil, apierrors.NewConflict(groupResource, "g", errors.New("a precondition does not hold"))
	}
	s.patches++
	s.object.SetResourceVersion(strconv.Itoa(s.patches + 1))
	if patch.GetSubresource() == "status" || !s.subresource {
		s.merge(body.Status)
	}
	if s.lose != nil {
		if err := s.lose(s.calls); err != nil {
			return nil, err
		}
	}
	return s.object.DeepCopy(), nil
}

func (s *statuses) merge(status map[string]any) {
	have, _, _ := unstructured.NestedMap(s.object.Object, "status")
	if have == nil {
		have = map[string]any{}
	}
	for key, value := range status { // order: each for itself
		if key != "conditions" || s.source != cluster.GangOfGroup {
			have[key] = value
			continue
		}
		list, _ := have["conditions"].([]any)
		for _, c := range value.([]any) {
			i := slices.IndexFunc(list, func(had any) bool { return had.(map[string]any)["type"] == c.(map[string]any)["type"] })
			if i < 0 {
				list = append(list, c)
				continue
			}
			for k, v := range c.(map[string]any) { // order: each for itself
				list[i].(map[string]any)[k] = v
			}
		}
		have["conditions"] = list
	}
	// What came as JSON numbers is whole numbers again.
	raw, err := json.Marshal(have)
	if err != nil {
		panic(err)
	}
	back := &unstructured.Unstructured{}
	if err := back.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"x","status":` + string(raw) + `}`)); err != nil {
		panic(err)
	}
	s.object.Object["status"] = back.Object["status"]
}

// set wishes for a status; each change is made to one that waits for capacity.
func (s *statuses) set(change func(*engine.GangStatus)) {
	want := engine.GangStatus{Gang: cluster.GangKey{Source: s.source, Namespace: "ns", Name: "g"}, UID: "uid-of-g", Generation: 2,
		Reason: "Unschedulable", Message: "no room", Pending: 3}
	change(&want)
	s.Set(want)
}

func (s *statuses) waitsFor(why string) { s.set(func(g *engine.GangStatus) { g.Message = why }) }

func (s *statuses) placed(bound int) {
	s.set(func(g *engine.GangStatus) {
		g.Scheduled, g.Reason, g.Message, g.Pending, g.Bound = true, "", "", 3-bound, bound
	})
}

// settleStatuses waits until nothing happens any more.
func settleStatuses() {
	time.Sleep(time.Hour)
	synctest.Wait()
}

// shows is the status of the object on one line: phase, counts, conditions.
func (s *statuses) shows() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object == nil {
		return "gone"
	}
	var words []string
	if phase := gangapi.Phase(s.object); phase != "" {
		words = append(words, phase)
	}
	if n, found, _ := unstructured.NestedInt64(s.object.Object, "status", "running"); found {
		words = append(words, fmt.Sprint("running=", n))
	}
	list, _, _ := unstructured.NestedSlice(s.object.Object, "status", "conditions")
	for _, c := range list {
		f := c.(map[string]any)
		words = append(words, strings.TrimSuffix(fmt.Sprintf("%v=%v(%v: %v)", f["type"], f["status"], f["reason"], f["message"]), "\n"))
		if f["lastTransitionTime"] == nil {
			words = append(words, "untimed")
		}
	}
	return strings.Join(words, " ")
}

func (s *statuses) expect(t *testing.T, patches int, want string) {
	t.Helper()
	settleStatuses()
	if got := s.shows(); got != want || s.patches != patches {
		t.Errorf("after %d patches: %q, want %d and %q", s.patches, got, patches, want)
	}
}

// TestANativeGroupShowsHowItStands: waiting, then placed, and never waiting again. Mutants: an equal condition is
// written again; a placed group is shown as waiting; the transition's time is lost or renewed with each message.
func TestANativeGroupShowsHowItStands(t *testing.T) {
	writing(t, cluster.GangOfGroup, func(s *statuses) {
		s.waitsFor("no room")
		s.expect(t, 1, "PodGroupInitiallyScheduled=False(Unschedulable: no room)")
		first, _, _ := unstructured.NestedSlice(s.object.Object, "status", "conditions")
		s.waitsFor("no room")
		s.expect(t, 1, "PodGroupInitiallyScheduled=False(Unschedulable: no room)")
		s.waitsFor("2 pods are missing")
		s.expect(t, 2, "PodGroupInitiallyScheduled=False(Unschedulable: 2 pods are missing)")
		second, _, _ := unstructured.NestedSlice(s.object.Object, "status", "conditions")
		if a, b := first[0].(map[string]any), second[0].(map[string]any); a["lastTransitionTime"] != b["lastTransitionTime"] || a["observedGeneration"] != int64(2) {
			t.Errorf("first %v, then %v", a, b)
		}
		s.set(func(g *engine.GangStatus) { g.Admitted, g.Reason, g.Message = true, "", "" })
		s.expect(t, 2, "PodGroupInitiallyScheduled=False(Unschedulable: 2 pods are missing)")
		s.placed(3)
		s.expect(t, 3, "PodGroupInitiallyScheduled=True(Scheduled: )")
		s.waitsFor("an extra has no room")
		s.expect(t, 3, "PodGroupInitiallyScheduled=True(Scheduled: )")
		if n := kubetest.Value(t, s.reg, "kumiki_gang_statuses_total", "source=podgroup", "result=written"); n != 3 {
			t.Errorf("counted %v", n)
		}
	})
}

// TestAStatusIsWrittenAfterAnUpgrade of the API server, in the version that it serves then. Mutants: an API that is gone
// is taken for an object that is gone; the condition has the name of the old version.
func TestAStatusIsWrittenAfterAnUpgrade(t *testing.T) {
	writing(t, cluster.GangOfGroup, func(s *statuses) {
		s.served, s.version = "v1alpha2", "v1alpha2"
		s.object.SetAPIVersion("scheduling.k8s.io/v1alpha2")
		s.waitsFor("no room")
		s.expect(t, 1, "PodGroupScheduled=False(Unschedulable: no room)")
		s.served = "v1beta1"
		s.object.SetAPIVersion("scheduling.k8s.io/v1beta1")
		s.placed(3)
		s.expect(t, 2, "PodGroupScheduled=False(Unschedulable: no room) PodGroupInitiallyScheduled=True(Scheduled: )")
	})
}

// TestTheNewestStatusOfAGangIsWritten: while one cannot be written, the others of the gang are one. Mutant: each waits
// in line; what was reached is forgotten.
func TestTheNewestStatusOfAGangIsWritten(t *testing.T) {
	for _, source := range []cluster.GangSource{cluster.GangOfGroup, cluster.GangOfSigs, cluster.GangOfVolcano} {
		writing(t, source, func(s *statuses) {
			s.Hold(true)
			s.set(func(g *engine.GangStatus) { g.Admitted, g.Reason, g.Pending = true, "", 0 })
			for i := range 100 {
				s.set(func(g *engine.GangStatus) { g.Message, g.Pending = fmt.Sprint("try ", i), 0 })
			}
			s.expect(t, 0, "")
			s.Hold(false)
			s.expect(t, 1, map[cluster.GangSource]string{
				cluster.GangOfGroup:   "PodGroupInitiallyScheduled=False(Unschedulable: try 99)",
				cluster.GangOfSigs:    "Pending",
				cluster.GangOfVolcano: "Inqueue Unschedulable=True(Unschedulable: try 99)",
			}[source])
			s.Hold(true)
			s.placed(3)
			s.waitsFor("an extra has no room")
			s.Hold(false)
			settleStatuses()
			if got := s.shows(); !strings.Contains(got, "Scheduled=True") && !strings.HasPrefix(got, "Running") {
				t.Errorf("%s: the place of the gang was forgotten: %s", source, got)
			}
		})
	}
}

// TestPhasesThatControllersWaitFor: Volcano's job controller makes pods when its group is Inqueue; no phase is
// withdrawn. Mutants: Inqueue is not written without pods; Running is reset; Completed is overwritten; conditions of
// other writers are dropped; an unchanged count is written.
func TestPhasesThatControllersWaitFor(t *testing.T) {
	writing(t, cluster.GangOfVolcano, func(s *statuses) {
		s.object.Object["status"] = map[string]any{"phase": "Pending", "conditions": []any{
			map[string]any{"type": "Other", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}
		s.set(func(g *engine.GangStatus) { g.Admitted, g.Reason, g.Message, g.Pending = true, "", "", 0 })
		s.expect(t, 1, "Inqueue Other=True(r: m)")
		s.waitsFor("no room")
		s.expect(t, 2, "Inqueue Other=True(r: m) Unschedulable=True(Unschedulable: no room)")
		s.placed(3)
		s.expect(t, 3, "Running running=3 Other=True(r: m) Unschedulable=False(Scheduled: ) Scheduled=True(Scheduled: )")
		s.waitsFor("a member was lost")
		s.expect(t, 3, "Running running=3 Other=True(r: m) Unschedulable=False(Scheduled: ) Scheduled=True(Scheduled: )")
		s.object.Object["status"].(map[string]any)["phase"] = "Completed"
		s.placed(2)
		s.expect(t, 3, "Completed running=3 Other=True(r: m) Unschedulable=False(Scheduled: ) Scheduled=True(Scheduled: )")
	})
	writing(t, cluster.GangOfSigs, func(s *statuses) {
		s.set(func(g *engine.GangStatus) { g.Pending = 2 })
		s.expect(t, 1, "Pending")
		s.waitsFor("no room")
		s.expect(t, 2, "Scheduling")
		if _, found, _ := unstructured.NestedString(s.object.Object, "status", "scheduleStartTime"); !found {
			t.Error("the status lacks the time of the first try")
		}
		s.placed(2)
		s.expect(t, 3, "Running running=2")
		s.placed(3)
		s.expect(t, 4, "Running running=3")
		s.object.Object["status"].(map[string]any)["phase"] = "Failed"
		s.placed(2)
		s.expect(t, 4, "Failed running=3")
	})
}

// TestAStatusIsWrittenWhateverHappens: conflicts, lost answers and an API server that is away for minutes. Mutants: a
// conflict ends it; the watch is believed although it lags; a status is given up.
func TestAStatusIsWrittenWhateverHappens(t *testing.T) {
	want := map[cluster.GangSource]string{
		cluster.GangOfGroup: "PodGroupInitiallyScheduled=True(Scheduled: )", cluster.GangOfSigs: "Running running=3",
		cluster.GangOfVolcano: "Running running=3 Scheduled=True(Scheduled: )",
	}
	for source, shown := range want { // order: each for itself
		writing(t, source, func(s *statuses) {
			s.freeze()
			s.object.SetResourceVersion("77") // another client wrote
			s.placed(3)
			s.expect(t, 1, shown)
		})
		writing(t, source, func(s *statuses) {
			s.lose = func(call int) error {
				if call < 3 {
					return errors.New("the connection broke")
				}
				return nil
			}
			s.freeze()
			s.placed(3)
			s.expect(t, 1, shown)
		})
		writing(t, source, func(s *statuses) {
			s.fail = func(call int) error {
				if call <= 40 {
					return apierrors.NewServiceUnavailable("away")
				}
				return nil
			}
			s.placed(3)
			s.expect(t, 1, shown)
		})
		writing(t, source, func(s *statuses) {
			s.fail = func(int) error { return apierrors.NewForbidden(groupResource, "g", errors.New("no right")) }
			s.placed(3)
			s.expect(t, 0, "")
			if s.calls > 2 || kubetest.Value(t, s.reg, "kumiki_gang_statuses_total", "result=refused") != 1 {
				t.Errorf("%s: a refusal was asked for %d times", source, s.calls)
			}
		})
	}
}

// TestAnotherObjectOfTheNameGetsNoStatus, nor one that is gone. Mutant: the UID is no precondition.
func TestAnotherObjectOfTheNameGetsNoStatus(t *testing.T) {
	for _, source := range []cluster.GangSource{cluster.GangOfGroup, cluster.GangOfSigs, cluster.GangOfVolcano} {
		writing(t, source, func(s *statuses) {
			s.freeze()
			s.object.SetUID("another")
			s.placed(3)
			s.expect(t, 0, "")
		})
		writing(t, source, func(s *statuses) {
			s.freeze()
			s.object = nil
			s.placed(3)
			s.expect(t, 0, "gone")
			if s.calls > 2 {
				t.Errorf("%s: asked %d times", source, s.calls)
			}
		})
	}
}

// TestTheStatusGoesWhereItIsServed: Volcano's is part of the object, and may become a resource of its own while the
// scheduler runs. Mutant: a patch that changed nothing counts as written.
func TestTheStatusGoesWhereItIsServed(t *testing.T) {
	writing(t, cluster.GangOfVolcano, func(s *statuses) {
		s.waitsFor("no room")
		s.expect(t, 1, "Inqueue Unschedulable=True(Unschedulable: no room)")
		s.mu.Lock()
		s.subresource = true
		s.mu.Unlock()
		s.placed(3)
		settleStatuses()
		if got := s.shows(); !strings.HasPrefix(got, "Running running=3") {
			t.Errorf("shows %q", got)
		}
	})
}

// TestWithoutTheLeaseNoStatusIsWritten: a leader that was deposed, or whose lease is in doubt, writes nothing, and one
// in a pause neither. Mutant: statuses are not fenced.
func TestWithoutTheLeaseNoStatusIsWritten(t *testing.T) {
	for _, source := range []cluster.GangSource{cluster.GangOfGroup, cluster.GangOfSigs, cluster.GangOfVolcano} {
		writing(t, source, func(s *statuses) {
			var mu sync.Mutex
			leads := false
			s.lead = func() bool {
				mu.Lock()
				defer mu.Unlock()
				return leads
			}
			s.placed(3)
			s.expect(t, 0, "")
			mu.Lock()
			leads = true
			mu.Unlock()
			settleStatuses()
			if s.patches == 0 {
				t.Errorf("%s: nothing was written with the lease", source)
			}
			s.Hold(true)
			s.placed(2)
			was := s.shows()
			settleStatuses()
			if got := s.shows(); got != was {
				t.Errorf("%s: written in a pause: %s", source, got)
			}
		})
	}
}

// TestStatusesOfOtherGangsGoFirst when one cannot be written: its place is behind them. Mutant: four bad ones stop all.
func TestStatusesOfOtherGangsGoFirst(t *testing.T) {
	writing(t, cluster.GangOfGroup, func(s *statuses) {
		stuck := map[string]bool{}
		s.newest = func(key cluster.GangKey) *cluster.Gang {
			s.mu.Lock()
			defer s.mu.Unlock()
			g := s.read()
			g.Key = key
			return g
		}
		s.fail = func(int) error { return nil }
		s.objects.(*dynamicfake.FakeDynamicClient).PrependReactor("patch", "podgroups", func(a clienttesting.Action) (bool, runtime.Object, error) {
			name := a.(clienttesting.PatchAction).GetName()
			s.mu.Lock()
			defer s.mu.Unlock()
			if name != "g" {
				stuck[name] = true
				return true, nil, apierrors.NewInternalError(errors.New("a webhook is away"))
			}
			return false, nil, nil
		})
		for i := range 2 * gangsInFlight {
			s.set(func(g *engine.GangStatus) { g.Gang.Name = fmt.Sprint("stuck", i) })
		}
		s.placed(3)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := s.shows(); got != "PodGroupInitiallyScheduled=True(Scheduled: )" || len(stuck) != 2*gangsInFlight {
			t.Errorf("after a minute %q; %d were tried", got, len(stuck))
		}
	})
}

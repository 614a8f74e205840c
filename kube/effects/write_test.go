// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// objectServer is a fake clientset that keeps the rules about UIDs and versions, and that can fail in the ways that
// matter.
type objectServer struct {
	*fake.Clientset
	mu      sync.Mutex
	version int
	log     []string // verbs with resource and subresource that were applied, reads left out
	// before is asked before each call, after when it has been applied; see apiServer.
	before, after func(verb, resource string) error
}

func newObjectServer(objs ...metav1.Object) *objectServer {
	s := &objectServer{Clientset: fake.NewClientset(), version: 100}
	for _, o := range objs {
		if err := s.Tracker().Add(o.(runtime.Object)); err != nil {
			panic(err)
		}
	}
	s.PrependReactor("*", "*", s.react)
	return s
}

func (s *objectServer) react(action clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	before, after := s.before, s.after
	s.mu.Unlock()
	verb, resource := action.GetVerb(), action.GetResource().Resource
	if before != nil {
		if err := before(verb, resource); err != nil {
			return true, nil, err
		}
	}
	got, err := s.apply(action)
	if err == nil && after != nil {
		if lost := after(verb, resource); lost != nil {
			return true, nil, lost
		}
	}
	return true, got, err
}

// apply holds the preconditions against what is kept, and then lets the tracker do what it does.
func (s *objectServer) apply(action clienttesting.Action) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, uid, version := preconditionsOf(action)
	gvr := action.GetResource()
	if name != "" && action.GetVerb() != "create" {
		obj, err := s.Tracker().Get(gvr, action.GetNamespace(), name)
		if err != nil {
			return nil, err
		}
		was := obj.(metav1.Object)
		if uid != "" && uid != was.GetUID() || version != "" && version != was.GetResourceVersion() {
			return nil, apierrors.NewConflict(gvr.GroupResource(), name, errors.New("a precondition does not hold"))
		}
	}
	_, got, err := clienttesting.ObjectReaction(s.Tracker())(action)
	if err != nil {
		return nil, err
	}
	switch action.GetVerb() {
	case "get", "list", "watch":
		return got, nil
	}
	s.log = append(s.log, strings.TrimSuffix(action.GetVerb()+" "+gvr.Resource+"/"+action.GetSubresource(), "/"))
	if action.GetVerb() == "delete" {
		return got, nil
	}
	s.version++
	made := got.DeepCopyObject().(metav1.Object)
	made.SetResourceVersion(strconv.Itoa(s.version))
	if made.GetUID() == "" {
		made.SetUID(types.UID(fmt.Sprint("made-", s.version)))
	}
	return made.(runtime.Object), s.Tracker().Update(gvr, made.(runtime.Object), action.GetNamespace())
}

func preconditionsOf(action clienttesting.Action) (name string, uid types.UID, version string) {
	switch a := action.(type) {
	case clienttesting.PatchAction:
		var body struct {
			Metadata struct {
				UID             types.UID
				ResourceVersion string
			}
		}
		if err := json.Unmarshal(a.GetPatch(), &body); err != nil {
			panic(err)
		}
		return a.GetName(), body.Metadata.UID, body.Metadata.ResourceVersion
	case clienttesting.UpdateAction:
		obj := a.GetObject().(metav1.Object)
		return obj.GetName(), obj.GetUID(), obj.GetResourceVersion()
	case clienttesting.GetAction: // a delete is one too
		return a.GetName(), "", ""
	}
	return "", "", ""
}

func kept[T any](t *testing.T, s *objectServer, resource schema.GroupVersionResource, namespace, name string) (got T, ok bool) {
	t.Helper()
	obj, err := s.Tracker().Get(resource, namespace, name)
	if apierrors.IsNotFound(err) {
		return got, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return obj.(T), true
}

var (
	volumeResource = v1.SchemeGroupVersion.WithResource("persistentvolumes")
	claimResource  = v1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	deviceResource = resourceapi.SchemeGroupVersion.WithResource("resourceclaims")
	podsResource   = v1.SchemeGroupVersion.WithResource("pods")
)

func ownedBy(c *resourceapi.ResourceClaim, uid types.UID) *resourceapi.ResourceClaim {
	yes := true
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: uid, Controller: &yes}}
	return c
}

// scenario is one kind of write: what is asked for, and how its end looks.
type writeScenario struct {
	name  string
	write cluster.Write
	there []metav1.Object
	// verb and resource are the write whose reply is lost, the first or, by skip, a later one.
	verb, resource string
	skip           int
	// holds tells what is wrong with the end, empty when nothing is.
	holds func(t *testing.T, s *objectServer) string
}

func writeScenarios() []writeScenario {
	volume := cluster.Target{Kind: cluster.KindVolume, Name: "v", UID: "uv", ResourceVersion: "5"}
	pvc := cluster.Target{Kind: cluster.KindClaim, Namespace: "ns", Name: "c", UID: "uc", ResourceVersion: "6"}
	device := cluster.Target{Kind: cluster.KindDeviceClaim, Namespace: "ns", Name: "d", UID: "ud"}
	versioned := device
	versioned.ResourceVersion = "5"
	pod := record.PodRef{Namespace: "ns", Name: "p", UID: "up"}
	forPod := ownedBy(&resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}, "up")
	forPod.Status.Allocation, forPod.Status.ReservedFor = kubetest.Allocation(), []resourceapi.ResourceClaimConsumerReference{kubetest.Consumer("up")}
	isAllocated := func(name string) func(*testing.T, *objectServer) string {
		return func(t *testing.T, s *objectServer) string {
			c, ok := kept[*resourceapi.ResourceClaim](t, s, deviceResource, "ns", name)
			switch {
			case !ok:
				return "no claim"
			case c.Status.Allocation == nil || c.Status.Allocation.AllocationTimestamp == nil:
				return fmt.Sprintf("allocation %v", c.Status.Allocation)
			case len(c.Status.ReservedFor) != 1 || c.Status.ReservedFor[0].UID != "up":
				return fmt.Sprintf("reserved for %v", c.Status.ReservedFor)
			case !strings.Contains(fmt.Sprint(c.Finalizers), resourceapi.Finalizer):
				return fmt.Sprintf("finalizers %v", c.Finalizers)
			}
			return ""
		}
	}
	return []writeScenario{
		{"bind a volume", cluster.BindVolume{Target: volume, Claim: pvc, ByController: true}, []metav1.Object{kubetest.Volume()}, "update", "persistentvolumes", 0,
			func(t *testing.T, s *objectServer) string {
				v, _ := kept[*v1.PersistentVolume](t, s, volumeResource, "", "v")
				want := v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "ns", Name: "c", UID: "uc", ResourceVersion: "6"}
				if *v.Spec.ClaimRef != want || v.Annotations[boundByController] != "yes" || v.Annotations["mine"] != "1" || len(v.Spec.MountOptions) != 1 {
					return fmt.Sprintf("%+v %v", v.Spec.ClaimRef, v.Annotations)
				}
				return ""
			}},
		{"select a node", cluster.SelectNode{Target: pvc, Node: "n"}, []metav1.Object{kubetest.VolumeClaim("c", "uc", "6")}, "update", "persistentvolumeclaims", 0,
			func(t *testing.T, s *objectServer) string {
				c, _ := kept[*v1.PersistentVolumeClaim](t, s, claimResource, "ns", "c")
				if c.Annotations[selectedNode] != "n" {
					return fmt.Sprint(c.Annotations)
				}
				return ""
			}},
		{"allocate a claim", cluster.AllocateClaim{Target: device, Allocation: kubetest.Allocation(), ReservedFor: kubetest.Consumer("up")},
			[]metav1.Object{kubetest.DeviceClaim("5")}, "update", "resourceclaims", 1, isAllocated("d")},
		{"allocate a claim, lost on the way to the finalizer", cluster.AllocateClaim{Target: device, Allocation: kubetest.Allocation(), ReservedFor: kubetest.Consumer("up")},
			[]metav1.Object{kubetest.DeviceClaim("5")}, "update", "resourceclaims", 0, isAllocated("d")},
		{"reserve a claim", cluster.AllocateClaim{Target: device, ReservedFor: kubetest.Consumer("up")}, []metav1.Object{kubetest.AllocatedClaim("5")},
			"update", "resourceclaims", 0, isAllocated("d")},
		{"create a claim", cluster.CreateClaim{Claim: forPod, Pod: pod, Mappings: []cluster.ExtendedMapping{{Container: "c", Resource: "r", Request: "q"}}},
			[]metav1.Object{kubetest.PendingPod("p", "up")}, "create", "resourceclaims", 0,
			func(t *testing.T, s *objectServer) string {
				p, _ := kept[*v1.Pod](t, s, podsResource, "ns", "p")
				is := p.Status.ExtendedResourceClaimStatus
				if is == nil || is.ResourceClaimName != "x" || len(is.RequestMappings) != 1 || is.RequestMappings[0].RequestName != "q" {
					return fmt.Sprintf("status %+v", is)
				}
				return isAllocated("x")(t, s)
			}},
		{"release a claim", cluster.ReleaseClaim{Target: device, Consumer: "up"}, []metav1.Object{kubetest.AllocatedClaim("5", "other", "up")}, "patch", "resourceclaims", 0,
			func(t *testing.T, s *objectServer) string {
				c, _ := kept[*resourceapi.ResourceClaim](t, s, deviceResource, "ns", "d")
				if len(c.Status.ReservedFor) != 1 || c.Status.ReservedFor[0].UID != "other" || c.Status.Allocation == nil {
					return fmt.Sprintf("status %+v", c.Status)
				}
				return ""
			}},
		{"deallocate a claim", cluster.ReleaseClaim{Target: versioned, Deallocate: true}, []metav1.Object{kubetest.AllocatedClaim("5", "up")}, "update", "resourceclaims", 0,
			func(t *testing.T, s *objectServer) string {
				c, _ := kept[*resourceapi.ResourceClaim](t, s, deviceResource, "ns", "d")
				if len(c.Status.ReservedFor) != 0 || c.Status.Allocation != nil || len(c.Status.Devices) != 0 {
					return fmt.Sprintf("status %+v", c.Status)
				}
				return ""
			}},
		{"delete a claim", cluster.DeleteClaim{Target: cluster.Target{Namespace: "ns", Name: "d"}, Pod: pod},
			[]metav1.Object{ownedBy(kubetest.AllocatedClaim("5"), "up")}, "delete", "resourceclaims", 0,
			func(t *testing.T, s *objectServer) string {
				if _, is := kept[*resourceapi.ResourceClaim](t, s, deviceResource, "ns", "d"); is {
					return "still there"
				}
				return ""
			}},
	}
}

// prepared runs one Prepare to its end.
func prepared(t *testing.T, s *objectServer, writes ...cluster.Write) (message string) {
	t.Helper()
	var answers []engine.WritesDone
	m, _ := counted()
	w := NewWriter(t.Context(), s, 0, m, func(d engine.WritesDone) { answers = append(answers, d) })
	w.Prepare(engine.Prepare{Pod: record.PodRef{Namespace: "ns", Name: "p", UID: "up"}, Node: "n", Decision: 3, Writes: writes})
	time.Sleep(time.Hour)
	synctest.Wait()
	w.Drain(t.Context())
	if len(answers) != 1 || answers[0].Decision != 3 || answers[0].Pod.UID != "up" {
		t.Fatalf("answers %+v, want one", answers)
	}
	return answers[0].Message
}

// TestAWriteIsDoneOnceAndTrulyAnswered plays each kind of write with replies that are lost before and after the API
// server has acted, with conflicts that mean nothing, and done twice over. Catches a writer that takes a lost reply for
// a failure: the pod would be tried again while its claim is allocated.
func TestAWriteIsDoneOnceAndTrulyAnswered(t *testing.T) {
	for _, scenario := range writeScenarios() {
		server := func() *objectServer { return newObjectServer(scenario.there...) }
		oneTime := func(err error) func(string, string) error {
			n := 0
			return func(verb, resource string) error {
				if verb != scenario.verb || resource != scenario.resource {
					return nil
				}
				if n++; n != scenario.skip+1 {
					return nil
				}
				return err
			}
		}
		for _, way := range []struct {
			name    string
			prepare func(s *objectServer)
		}{
			{"plainly", func(*objectServer) {}},
			{"reply lost, was done", func(s *objectServer) { s.after = oneTime(kubetest.ErrLost) }},
			{"reply lost, was not done", func(s *objectServer) { s.before = oneTime(kubetest.ErrLost) }},
			{"server times out, was done", func(s *objectServer) { s.after = oneTime(apierrors.NewTimeoutError("etcd", 1)) }},
			{"reply lost, then the server is down for a while", func(s *objectServer) {
				s.after = oneTime(kubetest.ErrLost)
				down := 20
				s.before = func(verb, _ string) error {
					if verb == "get" && down > 0 {
						down--
						return kubetest.ErrLost
					}
					return nil
				}
			}},
		} {
			t.Run(scenario.name+", "+way.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := server()
					way.prepare(s)
					if message := prepared(t, s, scenario.write); message != "" {
						t.Errorf("failed: %s", message)
					}
					if wrong := scenario.holds(t, s); wrong != "" {
						t.Errorf("left behind: %s", wrong)
					}
					// Done is done: once more changes nothing.
					s.before, s.after = nil, nil
					before := len(s.log)
					if message := prepared(t, s, scenario.write); message != "" && scenario.name != "bind a volume" && scenario.name != "select a node" {
						t.Errorf("failed the second time: %s", message)
					}
					if wrong := scenario.holds(t, s); wrong != "" {
						t.Errorf("the second time left behind: %s", wrong)
					}
					if len(s.log) > before+3 {
						t.Errorf("the second time did %v", s.log[before:])
					}
				})
			})
		}
	}
}

// TestAWriteThatCannotBeIsAnErrorWithTheObject: another client has changed, replaced, deleted or used the object
// first.
func TestAWriteThatCannotBeIsAnErrorWithTheObject(t *testing.T) {
	byName := map[string]cluster.Write{}
	for _, s := range writeScenarios() {
		byName[s.name] = s.write
	}
	deleted := func(c *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
		now := metav1.Now()
		c.DeletionTimestamp = &now
		return c
	}
	changed := kubetest.Volume()
	changed.ResourceVersion = "9"
	replaced := kubetest.Volume()
	replaced.UID = "other"
	for _, c := range []struct {
		write  string
		there  []metav1.Object
		before func(verb, resource string) error
		want   string
	}{
		{"bind a volume", nil, nil, "binding volume v to claim ns/c"},
		{"bind a volume", []metav1.Object{changed}, nil, "has changed"},
		{"bind a volume", []metav1.Object{replaced}, nil, "another object"},
		{"select a node", []metav1.Object{kubetest.VolumeClaim("c", "uc", "7")}, nil, "claim ns/c"},
		{"allocate a claim", nil, nil, "not found"},
		{"allocate a claim", []metav1.Object{kubetest.AllocatedClaim("5", "other")}, nil, "got allocated elsewhere in the meantime"},
		{"allocate a claim", []metav1.Object{deleted(kubetest.DeviceClaim("5"))}, nil, "got deleted in the meantime"},
		{"reserve a claim", []metav1.Object{kubetest.DeviceClaim("5")}, nil, "got deallocated elsewhere in the meantime"},
		{"create a claim", []metav1.Object{ownedBy(&resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "ux"}}, "another pod")},
			nil, "was not made for pod ns/p"},
		{"deallocate a claim", []metav1.Object{kubetest.AllocatedClaim("6", "up")}, nil, "has changed"},
		{"allocate a claim", []metav1.Object{kubetest.DeviceClaim("5")}, func(verb, _ string) error {
			if verb == "update" {
				return apierrors.NewForbidden(deviceResource.GroupResource(), "d", errors.New("quota"))
			}
			return nil
		}, "adding the finalizer to claim ns/d"},
		{"reserve a claim", []metav1.Object{kubetest.AllocatedClaim("5")}, func(verb, _ string) error {
			if verb == "update" {
				return apierrors.NewForbidden(deviceResource.GroupResource(), "d", errors.New("quota"))
			}
			return nil
		}, "adding reservation to claim ns/d"},
		{"bind a volume", []metav1.Object{kubetest.Volume()}, func(verb, _ string) error {
			if verb == "update" {
				return apierrors.NewInternalError(errors.New("webhook down"))
			}
			return nil
		}, "webhook down"},
	} {
		t.Run(c.write+": "+c.want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newObjectServer(c.there...)
				s.before = c.before
				if message := prepared(t, s, byName[c.write]); !strings.Contains(message, c.want) {
					t.Errorf("message %q, want something with %q", message, c.want)
				}
			})
		})
	}
}

// TestAnUndoneWriteLeavesNothing: things that are gone need not be undone, and foreign ones stay.
func TestAnUndoneWriteLeavesNothing(t *testing.T) {
	for _, scenario := range writeScenarios() {
		switch scenario.write.(type) {
		case cluster.ReleaseClaim, cluster.DeleteClaim:
		default:
			continue
		}
		other := ownedBy(kubetest.AllocatedClaim("5", "other"), "another pod")
		other.UID = "another claim"
		for name, there := range map[string][]metav1.Object{"gone": nil, "another": {other}} {
			t.Run(scenario.name+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newObjectServer(there...)
					if message := prepared(t, s, scenario.write); message != "" {
						t.Error(message)
					}
					if len(s.log) != 0 {
						t.Errorf("did %v", s.log)
					}
				})
			})
		}
	}
}

// TestJobsOfAPodFollowEachOther: a Release that is slow must not take back what the next attempt writes. Catches
// workers that carry out the jobs of one pod side by side.
func TestJobsOfAPodFollowEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newObjectServer(kubetest.AllocatedClaim("5", "up"))
		answers := make(chan engine.WritesDone, 1)
		m, _ := counted()
		w := NewWriter(t.Context(), s, 0, m, func(d engine.WritesDone) { answers <- d })
		var asked atomic.Int32
		w.lead = func() bool {
			if asked.Add(1) == 2 {
				time.Sleep(20 * time.Second) // in the first write, before it is sent; the first question is whether to begin
			}
			return true
		}
		pod := record.PodRef{Namespace: "ns", Name: "p", UID: "up"}
		target := cluster.Target{Namespace: "ns", Name: "d", UID: "ud"}
		w.Release(engine.Release{Pod: pod, Writes: []cluster.Write{cluster.ReleaseClaim{Target: target, Consumer: "up"}}})
		w.Prepare(engine.Prepare{Pod: pod, Writes: []cluster.Write{cluster.AllocateClaim{Target: target, ReservedFor: kubetest.Consumer("up")}}})
		if d := <-answers; d.Message != "" {
			t.Error(d.Message)
		}
		c, _ := kept[*resourceapi.ResourceClaim](t, s, deviceResource, "ns", "d")
		if !reservedBy(c, "up") {
			t.Error("the next attempt's reservation was taken back")
		}
		w.Drain(t.Context())
		if len(w.lanes) != 0 {
			t.Errorf("%d lanes are kept", len(w.lanes))
		}
	})
}

// TestPodsThatShareAClaimTakeTurns: each starts from what the one before wrote, so no write is refused and the claim is
// read once. It catches a Writer without turns, and one that forgets what the last turn wrote.
func TestPodsThatShareAClaimTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newObjectServer(kubetest.AllocatedClaim("5"))
		reads := atomic.Int32{}
		s.before = func(verb, _ string) error {
			if verb == "get" {
				reads.Add(1)
			}
			time.Sleep(10 * time.Millisecond) // so that all are under way at once
			return nil
		}
		m, _ := counted()
		answers := make(chan engine.WritesDone, 8)
		w := NewWriter(t.Context(), s, 0, m, func(d engine.WritesDone) { answers <- d })
		target := cluster.Target{Namespace: "ns", Name: "d", UID: "ud"}
		for i := range cap(answers) {
			uid := fmt.Sprint("u", i)
			w.Prepare(engine.Prepare{Pod: record.PodRef{Namespace: "ns", Name: uid, UID: uid}, Writes: []cluster.Write{
				cluster.AllocateClaim{Target: target, ReservedFor: kubetest.Consumer(types.UID(uid))}}})
		}
		for range cap(answers) {
			if d := <-answers; d.Message != "" {
				t.Error(d.Message)
			}
		}
		c, _ := kept[*resourceapi.ResourceClaim](t, s, deviceResource, "ns", "d")
		if len(c.Status.ReservedFor) < cap(answers) || reads.Load() != 1 || len(s.log) != cap(answers) {
			t.Errorf("reserved for %v after %d reads and %v", c.Status.ReservedFor, reads.Load(), s.log)
		}
		w.Drain(t.Context())
		if len(w.turns.of) != 0 {
			t.Errorf("%d turns are kept", len(w.turns.of))
		}
	})
}

// TestNothingIsWrittenWhileAnotherMayLead waits for the renewal, and gives up with the process.
func TestNothingIsWrittenWhileAnotherMayLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newObjectServer(kubetest.VolumeClaim("c", "uc", "6"))
		m, _ := counted()
		w := NewWriter(t.Context(), s, 0, m, func(d engine.WritesDone) { t.Errorf("answered %+v", d) })
		w.lead = func() bool { return false }
		w.Prepare(engine.Prepare{Pod: record.PodRef{UID: "u"}, Writes: []cluster.Write{
			cluster.SelectNode{Target: cluster.Target{Namespace: "ns", Name: "c", UID: "uc"}, Node: "n"}}})
		time.Sleep(time.Minute)
		w.Drain(call.Expired())
		if len(s.log) != 0 {
			t.Errorf("did %v", s.log)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	csitrans "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodedeclaredfeatures"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumezone"

	"github.com/kumiki-scheduler/kumiki/conformance/hints"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/release"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/plugins/volumes"
)

// What a run of the tests compares if the environment does not say otherwise.
const (
	defaultCases = 3000
	defaultSeed  = 20261121
)

// migration is plugin.Migration by upstream's library.
type migration struct{ csitrans.CSITranslator }

func (m migration) Provisioner(name string) (string, bool) {
	driver, err := m.GetCSINameFromInTreeName(name)
	return driver, err == nil
}

func (m migration) Inline(v *v1.Volume, namespace string) (plugin.Migrated, bool) {
	if !m.IsInlineMigratable(v) {
		return plugin.Migrated{}, false
	}
	pv, err := m.TranslateInTreeInlineVolumeToCSI(klog.Background(), v, namespace)
	return m.migrated(nil, v, pv, err), true
}

func (m migration) Volume(pv *v1.PersistentVolume) (plugin.Migrated, bool) {
	if !m.IsPVMigratable(pv) {
		return plugin.Migrated{}, false
	}
	as, err := m.TranslateInTreePVToCSI(klog.Background(), pv)
	return m.migrated(pv, nil, as, err), true
}

func (m migration) migrated(pv *v1.PersistentVolume, v *v1.Volume, as *v1.PersistentVolume, err error) plugin.Migrated {
	name, _ := m.GetInTreePluginNameFromSpec(pv, v)
	driver, _ := m.GetCSINameFromInTreeName(name)
	return plugin.Migrated{Plugin: name, Driver: driver, PV: as, Err: err}
}

// handle is what upstream's plugins ask of the framework.
type handle struct {
	fwk.Handle
	objects  *oracle.Objects
	snapshot *internalcache.Snapshot
}

func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.objects.Factory }
func (h *handle) SnapshotSharedLister() fwk.SharedLister                 { return h.snapshot }
func (h *handle) SharedCSIManager() fwk.CSIManager {
	return nodevolumelimits.NewCSIManager(h.objects.Factory.Storage().V1().CSINodes().Lister())
}

// world is one cluster on both sides.
type world struct {
	m     maker
	h     *handle
	store *cluster.Store
	in    *convert.Intake
	nodes []*v1.Node
	bound []*v1.Pod
}

func (w *world) set(obj scenario.APIObject) {
	w.h.objects.Set(obj)
	w.store.SetObject(obj.(cluster.Object))
}

func newWorld(m maker) *world {
	w := &world{m: m, h: &handle{objects: oracle.NewObjects()}, store: cluster.NewStore(), in: convert.NewIntake()}
	for _, name := range nodeNames {
		n := m.node(name)
		w.nodes = append(w.nodes, n)
		w.store.SetNode(w.in.Node(n))
		if m.chance(85) {
			w.set(m.csiNode(name))
		}
	}
	for _, name := range []string{"wait", "now", "unset", "intree"} {
		if m.chance(95) {
			w.set(m.class(name))
		}
	}
	for _, name := range claimNames {
		w.set(m.claim(name))
	}
	for _, name := range pvNames {
		w.set(m.volume(name))
	}
	for i := range m.IntN(6) {
		w.set(m.attachment(fmt.Sprint("va", i)))
	}
	for i := range m.IntN(7) {
		p := m.pod(one(m, ns, ns, ns, "far"), fmt.Sprint("bound", i))
		p.Spec.NodeName = one(m, nodeNames...)
		w.bound = append(w.bound, p)
		w.store.SetPod(w.in.Pod(p))
		for _, c := range m.claimsOf(p) {
			w.set(c)
		}
	}
	w.h.snapshot = internalcache.NewSnapshot(w.bound, w.nodes)
	return w
}

// pair is one plugin on both sides.
type pair struct {
	up   fwk.Plugin
	ours plugin.Filter
}

// limits makes NodeVolumeLimits for the features at present.
func limits() plugin.Filter {
	args := volumes.NodeVolumeLimitsArgs{NeedDrivers: release.Features().VolumeLimitScaling}
	pl, err := volumes.MakeNodeVolumeLimits(args)
	if err != nil {
		panic(fmt.Sprintf("NodeVolumeLimits with %+v: %v", args, err))
	}
	return pl.WithMigration(migration{csitrans.New()}).(plugin.Filter)
}

func (w *world) plugins(t *testing.T) []pair {
	ctx, gates := context.Background(), feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	must := func(pl fwk.Plugin, err error) fwk.Plugin {
		if err != nil {
			t.Fatal(err)
		}
		return pl
	}
	return []pair{
		{must(volumerestrictions.New(ctx, nil, w.h, gates)), volumes.VolumeRestrictions{}},
		{must(nodevolumelimits.NewCSI(ctx, nil, w.h, gates)), limits()},
		{must(volumezone.New(ctx, nil, w.h, gates)), volumes.VolumeZone{}},
		{must(nodedeclaredfeatures.New(ctx, nil, w.h, gates)), basic.NodeDeclaredFeatures{}},
	}
}

func upWords(st *fwk.Status) string {
	switch {
	case st.IsSuccess():
		return "fits"
	case st.Code() == fwk.Error:
		return "error: " + st.AsError().Error()
	case st.Code() == fwk.UnschedulableAndUnresolvable:
		return "never: " + strings.Join(st.Reasons(), ",")
	}
	return st.Code().String() + ": " + strings.Join(st.Reasons(), ",")
}

func ourWords(f plugin.PodFilter, c plugin.Code) string {
	if failing, ok := f.(plugin.Failing); ok && failing.Failed() != nil {
		return "error: " + failing.Failed().Error()
	}
	switch {
	case c == plugin.Fit:
		return "fits"
	case c&plugin.Unresolvable != 0:
		return "never: " + strings.Join(f.Reasons(c), ",")
	}
	return "Unschedulable: " + strings.Join(f.Reasons(c), ",")
}

// upstream is what upstream's plugin says of each node, after other pods came and went.
func (p pair) upstream(t *testing.T, w *world, pod *v1.Pod, come, gone []*v1.Pod) (words []string) {
	ctx, state := context.Background(), framework.NewCycleState()
	all := func(s string) []string {
		for range nodeNames {
			words = append(words, s)
		}
		return words
	}
	nodes, err := w.h.snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	pre := p.up.(fwk.PreFilterPlugin)
	if _, st := pre.PreFilter(ctx, state, pod, nodes); st.IsSkip() {
		return all("fits")
	} else if !st.IsSuccess() {
		return all(upWords(st))
	}
	if x := pre.PreFilterExtensions(); x != nil {
		for _, other := range come {
			info, _ := framework.NewPodInfo(other)
			x.AddPod(ctx, state, pod, info, nodes[0])
		}
		for _, other := range gone {
			info, _ := framework.NewPodInfo(other)
			x.RemovePod(ctx, state, pod, info, nodes[0])
		}
	}
	for _, name := range nodeNames {
		info, err := w.h.snapshot.NodeInfos().Get(name)
		if err != nil {
			t.Fatal(err)
		}
		words = append(words, upWords(p.up.(fwk.FilterPlugin).Filter(ctx, state, pod, info)))
	}
	return words
}

// kumiki is what our plugin says, in both forms, which must agree.
func (p pair) kumiki(t *testing.T, w *world, pod *v1.Pod, come, gone []*v1.Pod) (words []string) {
	s, ours := w.store.Snapshot(), w.in.Pod(pod)
	plan := p.ours.PrepareFilter(s, ours)
	for _, name := range nodeNames {
		switch {
		case plan.Err != nil:
			words = append(words, "error: "+plan.Err.Error())
		case plan.Reject != "" && plan.Resolvable:
			words = append(words, "Unschedulable: "+plan.Reject)
		case plan.Reject != "":
			words = append(words, "never: "+plan.Reject)
		case plan.Filter == nil:
			words = append(words, "fits")
		}
		if len(words) > 0 && plan.Filter == nil {
			continue
		}
		if x, ok := plan.Filter.(plugin.Supposing); ok && len(words) == 0 {
			for _, other := range come {
				x.AddPod(s, w.in.Pod(other), nil)
			}
			for _, other := range gone {
				x.RemovePod(s, w.in.Pod(other), nil)
			}
		}
		n, _ := s.Find(name)
		plain := ourWords(plan.Filter, plan.Filter.Plain(s, s.View(n)))
		out := make([]plugin.Verdict, s.Rows())
		plan.Filter.Column(s, n, n+1, plugin.TagOf(0), out)
		if column := ourWords(plan.Filter, out[n].Code()); column != plain {
			t.Fatalf("%s on %s: plain form %q, column form %q", p.ours.Name(), name, plain, column)
		}
		words = append(words, plain)
	}
	return words
}

// The four plugins say the same as upstream's of each node, to the letter.
func TestFiltersLikeUpstream(t *testing.T) {
	seen := filtersLikeUpstream(t, sampling.Cases(t, defaultCases))
	for _, must := range []string{"VolumeRestrictions never", "VolumeRestrictions Unschedulable", "NodeVolumeLimits Unschedulable", "NodeVolumeLimits never",
		"NodeVolumeLimits error", "NodeVolumeLimits fits", "VolumeZone never", "VolumeZone fits", "NodeDeclaredFeatures never", "NodeDeclaredFeatures fits"} {
		if seen[must] < 200 {
			t.Errorf("%q happened %d times: the cases say too little", must, seen[must])
		}
	}
}

// The same for the release before, where no driver is needed.
func TestFiltersLikeUpstreamEmulated(t *testing.T) {
	release.Emulate(t, "--emulated-version=1.36")
	if seen := filtersLikeUpstream(t, sampling.Cases(t, defaultCases)/5); seen["NodeVolumeLimits Unschedulable"] < 20 {
		t.Errorf("the cases say too little: %v", seen)
	}
}

// filtersLikeUpstream compares generated cases and counts the answers: plugin and kind of answer -> how often.
func filtersLikeUpstream(t *testing.T, cases int) map[string]int {
	seed, seen := sampling.SeedOr(t, defaultSeed), map[string]int{}
	for i := range cases {
		w := newWorld(maker{rand.New(rand.NewPCG(seed, uint64(i)))})
		plugins := w.plugins(t)
		for k := range 3 {
			pod := w.m.pod(ns, fmt.Sprint("pending", k))
			for _, c := range w.m.claimsOf(pod) {
				w.set(c)
			}
			var come, gone []*v1.Pod
			if w.m.chance(30) {
				come = append(come, w.m.pod(one(w.m, ns, "far"), "come"))
			}
			if w.m.chance(30) && len(w.bound) > 0 {
				gone = append(gone, one(w.m, w.bound...))
			}
			for _, p := range plugins {
				up, ours := p.upstream(t, w, pod, come, gone), p.kumiki(t, w, pod, come, gone)
				for n := range nodeNames {
					if up[n] != ours[n] {
						t.Fatalf("case %d of seed %d, %s on %s\nupstream %s\nkumiki   %s\npod %+v", i, seed, p.ours.Name(), nodeNames[n], up[n], ours[n], pod.Spec.Volumes)
					}
					kind, _, _ := strings.Cut(up[n], ":")
					seen[p.ours.Name()+" "+kind]++
				}
			}
		}
	}
	t.Logf("%d cases of seed %d: %v", cases, seed, seen)
	return seen
}

// change is one event on both sides.
type change struct {
	event    fwk.ClusterEvent
	old, new any
	ours     plugin.Change
}

func (w *world) change() change {
	object := func(r fwk.EventResource, a fwk.ActionType, old, obj cluster.Object) change {
		c := change{event: fwk.ClusterEvent{Resource: r, ActionType: a}, ours: plugin.Change{OldObject: old, NewObject: obj}}
		if old != nil {
			c.old = old
		}
		if obj != nil {
			c.new = obj
		}
		return c
	}
	m := w.m
	action := one(m, fwk.Add, fwk.Update, fwk.Delete)
	pick := func(r fwk.EventResource, before, after cluster.Object) change {
		switch action {
		case fwk.Add:
			return object(r, action, nil, after)
		case fwk.Delete:
			return object(r, action, before, nil)
		}
		return object(r, action, before, after)
	}
	switch m.IntN(7) {
	case 0:
		name := one(m, append(claimNames, "pending-v0", "pending-v1", "pending-v2")...)
		return pick(fwk.PersistentVolumeClaim, m.claim(name), m.claim(name))
	case 1:
		before := m.volume("pv0")
		after := m.volume("pv0")
		if m.chance(30) {
			after.Labels = before.Labels
		}
		return pick(fwk.PersistentVolume, before, after)
	case 2:
		return pick(fwk.StorageClass, m.class("wait"), m.class(one(m, "wait", "now", "unset")))
	case 3:
		before := m.csiNode("n0")
		after := before.DeepCopy()
		if len(after.Spec.Drivers) > 0 && m.chance(80) {
			limit := int32(m.IntN(5))
			after.Spec.Drivers[m.IntN(len(after.Spec.Drivers))].Allocatable = &storagev1.VolumeNodeResources{Count: &limit}
		}
		return pick(fwk.CSINode, before, after)
	case 4:
		return pick(fwk.VolumeAttachment, m.attachment("va"), m.attachment("va"))
	case 5:
		before, after := m.node("n0"), m.node("n0")
		c := change{event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: one(m, fwk.Add, fwk.UpdateNodeDeclaredFeature, fwk.UpdateNodeLabel, fwk.UpdateNodeTaint)}, new: after}
		c.ours.NewNode = w.in.Node(after)
		if c.event.ActionType != fwk.Add {
			if m.chance(50) {
				before.Status.DeclaredFeatures = after.Status.DeclaredFeatures
			}
			c.old, c.ours.OldNode = before, w.in.Node(before)
		}
		return c
	}
	before, after := m.pod(one(m, ns, "far"), one(m, "pending", "other")), m.pod(ns, "pending")
	before.UID, after.Namespace, after.Name, after.UID = "uid-"+before.UID, before.Namespace, before.Name, "uid-"+before.UID
	before.UID = after.UID
	if before.Name == "pending" {
		before.UID, after.UID = "uid-pending", "uid-pending"
	}
	if m.chance(60) {
		before.Spec.NodeName = "n0"
	} else if m.chance(50) {
		before.Status.NominatedNodeName = "n0"
	}
	c := change{event: fwk.ClusterEvent{Resource: "AssignedPod", ActionType: fwk.Delete}, old: before, ours: plugin.Change{OldPod: w.in.Pod(before)}}
	if m.chance(50) {
		c.event = fwk.ClusterEvent{Resource: "UnschedulablePod", ActionType: one(m, fwk.UpdatePodLabel, fwk.Update)}
		c.new, c.ours.NewPod = after, w.in.Pod(after)
	}
	return c
}

// The hints about random events are upstream's, and so is what is registered.
func TestHintsLikeUpstream(t *testing.T) {
	seed, cases := sampling.SeedOr(t, defaultSeed), sampling.Cases(t, defaultCases)
	ctx, seen := context.Background(), map[string]int{}
	for i := range cases {
		w := newWorld(maker{rand.New(rand.NewPCG(seed+1, uint64(i)))})
		pod := w.m.pod(ns, "pending")
		ours := w.in.Pod(pod)
		for _, p := range w.plugins(t) {
			registered, err := p.up.(fwk.EnqueueExtensions).EventsToRegister(ctx)
			if err != nil {
				t.Fatal(err)
			}
			wakes := p.ours.(plugin.Waker).Wakes()
			if len(wakes) != len(registered) {
				t.Fatalf("%s is registered for %d events, upstream for %d", p.ours.Name(), len(wakes), len(registered))
			}
			for range 6 {
				c := w.change()
				c.ours.Event = plugin.Event{Resource: plugin.Resource(c.event.Resource), Action: plugin.Action(c.event.ActionType)}
				up, kumiki := hints.Upstream(registered, c.event, pod, c.old, c.new), hints.Kumiki(wakes, c.ours, ours)
				if up != kumiki {
					t.Fatalf("case %d of seed %d, %s about %s: upstream %s, kumiki %s\npod %+v\nold %+v\nnew %+v", i, seed+1, p.ours.Name(), c.event.Label(), up, kumiki, pod.Spec, c.old, c.new)
				}
				seen[p.ours.Name()+" "+string(c.event.Resource)+" "+string(up)]++
			}
		}
	}
	t.Logf("%d cases of seed %d: %v", cases, seed+1, seen)
}

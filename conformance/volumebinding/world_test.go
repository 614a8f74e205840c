// SPDX-License-Identifier: Apache-2.0

package volumebinding

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	csitrans "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"

	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/release"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/volumes"
)

// migration is plugin.Migration by upstream's library.
type migration struct{ csitrans.CSITranslator }

func (migration) Provisioner(string) (string, bool)                      { return "", false }
func (migration) Inline(*v1.Volume, string) (m plugin.Migrated, ok bool) { return m, false }

func (m migration) Volume(pv *v1.PersistentVolume) (plugin.Migrated, bool) {
	if !m.IsPVMigratable(pv) {
		return plugin.Migrated{}, false
	}
	name, _ := m.GetInTreePluginNameFromSpec(pv, nil)
	as, err := m.TranslateInTreePVToCSI(klog.Background(), pv)
	return plugin.Migrated{Plugin: name, PV: as, Err: err}, true
}

// handle is what upstream's plugin asks of the framework.
type handle struct {
	fwk.Handle
	objects *oracle.Objects
	client  kubernetes.Interface
}

func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.objects.Factory }
func (h *handle) ClientSet() kubernetes.Interface                        { return h.client }

// world is one cluster on both sides, with both plugins.
type world struct {
	m     maker
	h     *handle
	store *cluster.Store
	in    *convert.Intake
	up    *upstream.VolumeBinding
	ours  *volumes.VolumeBinding
}

func (w *world) set(obj scenario.APIObject) {
	w.h.objects.Set(obj)
	switch o := obj.(type) {
	case *v1.Node:
		w.store.SetNode(w.in.Node(o))
	case cluster.Object:
		w.store.SetObject(o)
	}
}

func (w *world) remove(kind cluster.Kind, namespace, name string) {
	w.h.objects.Delete(scenario.ObjectRef{Kind: string(kind), Namespace: namespace, Name: name})
	w.store.DeleteObject(kind, cluster.ObjectKey{Namespace: namespace, Name: name})
}

func newWorld(t *testing.T, m maker, client kubernetes.Interface) *world {
	w := &world{m: m, h: &handle{objects: oracle.NewObjects(), client: client}, store: cluster.NewStore(), in: convert.NewIntake()}
	gates := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	args, oursArgs := &config.VolumeBindingArgs{BindTimeoutSeconds: 600,
		Shape: []config.UtilizationShapePoint{{Utilization: 0, Score: 10}, {Utilization: 100, Score: 0}}}, volumes.DefaultVolumeBindingArgs()
	if !release.Features().StorageCapacityScoring {
		args.Shape, oursArgs.Shape = nil, nil
	}
	up, err := upstream.New(context.Background(), args, w.h, gates)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := volumes.NewVolumeBinding(oursArgs)
	if err != nil {
		t.Fatal(err)
	}
	w.up, w.ours = up.(*upstream.VolumeBinding), ours.WithMigration(migration{csitrans.New()}).(*volumes.VolumeBinding)
	for _, name := range nodeNames {
		w.set(m.node(name))
		if m.chance(80) {
			w.set(m.csiNode(name))
		}
	}
	for _, name := range append([]string{"now", "unset"}, classNames...) {
		if m.chance(98) {
			w.set(m.class(name))
		}
	}
	for _, name := range claimNames {
		w.set(m.claim(name))
	}
	free := append([]string(nil), claimNames...)
	for i := range 8 {
		pv := m.volume(i)
		if m.chance(15) && len(free) > 0 { // no two volumes name one claim
			pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: ns, Name: free[0], UID: types.UID(one(m, "", "uid-"+free[0], "uid-before"))}
			free = free[1:]
		}
		w.set(pv)
	}
	if m.chance(80) {
		w.set(m.driver())
	}
	for i := range m.IntN(5) {
		w.set(m.room(i))
	}
	return w
}

// upstreamSays is what upstream says of a pod on each node.
func (w *world) upstreamSays(p *v1.Pod, state fwk.CycleState) (words []string) {
	ctx := context.Background()
	pre, st := w.up.PreFilter(ctx, state, p, nil)
	if pre != nil {
		panic("upstream's PreFilter names nodes")
	}
	for _, name := range nodeNames {
		if st.IsSuccess() {
			words = append(words, name+" "+upWords(w.up.Filter(ctx, state, p, w.info(name))))
		} else {
			words = append(words, name+" "+upWords(st))
		}
	}
	return words
}

func (w *world) info(name string) fwk.NodeInfo {
	obj, _ := w.h.objects.Get(scenario.ObjectRef{Kind: "Node", Name: name})
	info := framework.NewNodeInfo()
	info.SetNode(obj.(*v1.Node))
	return info
}

func upWords(st *fwk.Status) string {
	switch {
	case st.IsSuccess(), st.IsSkip():
		return "fits"
	case st.Code() == fwk.Error:
		return "error: " + st.AsError().Error()
	case st.Code() == fwk.UnschedulableAndUnresolvable:
		return "never: " + strings.Join(st.Reasons(), ", ")
	}
	return st.Code().String() + ": " + strings.Join(st.Reasons(), ", ")
}

// kumikiSays is what our plugin says, in both forms, which must agree.
func (w *world) kumikiSays(t *testing.T, s cluster.Snapshot, p *cluster.Pod) (words []string) {
	plan := w.ours.PrepareFilter(s, p)
	for _, name := range nodeNames {
		said := "fits"
		switch {
		case plan.Err != nil:
			said = "error: " + plan.Err.Error()
		case plan.Reject != "":
			said = "never: " + plan.Reject
		case plan.Filter != nil:
			n, _ := s.Find(name)
			said = ourWords(plan.Filter, plan.Filter.Plain(s, s.View(n)))
			// Prepared anew: an error stays with what met it.
			again := w.ours.PrepareFilter(s, p).Filter
			out := make([]plugin.Verdict, s.Rows())
			again.Column(s, n, n+1, plugin.TagOf(0), out)
			if column := ourWords(again, out[n].Code()); column != said {
				t.Fatalf("on %s: plain form %q, column form %q", name, said, column)
			}
			plan = w.ours.PrepareFilter(s, p)
		}
		words = append(words, name+" "+said)
	}
	return words
}

func ourWords(f plugin.PodFilter, c plugin.Code) string {
	if err := f.(plugin.Failing).Failed(); err != nil {
		return "error: " + err.Error()
	}
	switch {
	case c == plugin.Fit:
		return "fits"
	case c&plugin.Unresolvable != 0:
		return "never: " + strings.Join(f.Reasons(c), ", ")
	}
	return "Unschedulable: " + strings.Join(f.Reasons(c), ", ")
}

// sameWords asks both about a pod.
func (w *world) sameWords(t *testing.T, what string, s cluster.Snapshot, p *v1.Pod, count func(string)) (state fwk.CycleState, fits []string) {
	t.Helper()
	state = framework.NewCycleState()
	up, ours := w.upstreamSays(p, state), w.kumikiSays(t, s, w.in.PendingPod(p))
	if !slices.Equal(up, ours) {
		t.Fatalf("%s\nupstream %q\nkumiki   %q\npod %+v", what, up, ours, p.Spec.Volumes)
	}
	for i, said := range up {
		said = strings.TrimPrefix(said, nodeNames[i]+" ")
		count(strings.NewReplacer(", node(s)", " + ").Replace(strings.TrimPrefix(firstWords(said), "never: node(s) ")))
		if said == "fits" {
			fits = append(fits, nodeNames[i])
		}
	}
	return state, fits
}

// firstWords is a text without the names in it.
func firstWords(s string) string {
	if i := strings.IndexAny(s, `"/`); i >= 0 {
		s = s[:i]
	}
	return s
}

// handsOver is a CSINode that has handed over both in-tree kinds.
func (m maker) handsOver(name string) *storagev1.CSINode {
	c := &storagev1.CSINode{ObjectMeta: m.meta("", name)}
	c.Annotations = map[string]string{v1.MigratedPluginsAnnotationKey: ebs + "," + gce}
	return c
}

func tally(seen map[string]int) string {
	var lines []string
	for what, n := range seen { // order: sorted below
		lines = append(lines, fmt.Sprintf("%7d %s", n, what))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

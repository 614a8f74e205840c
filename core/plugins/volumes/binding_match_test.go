// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// finds returns the volumes that match a pod's claims on a node, in the order of their size: the name of a volume, or
// "make". It asks both forms and fails when they differ.
func finds(t plugintest.Failer, w *plugintest.Cluster, pl *VolumeBinding, p *v1.Pod, nodeName string) (found []string) {
	s := w.Store.Snapshot()
	plan := pl.PrepareFilter(s, w.Intake.PendingPod(p))
	if plan.Filter == nil {
		t.Fatalf("not filtered: %+v", plan)
	}
	f := plan.Filter.(*volumeFilter)
	n, _ := s.Find(nodeName)
	slow, err := f.slowly(s, s.Node(n))
	if err != nil {
		t.Fatalf("%v", err)
	}
	sameFinds(t, s, f, s.Node(n), slow)
	if slow.code != plugin.Fit {
		return f.Reasons(slow.code)
	}
	for _, take := range slow.take {
		found = append(found, take.claim.Name+" "+take.pv.Name)
	}
	for _, claim := range slow.make {
		found = append(found, claim.Name+" make")
	}
	return found
}

// sameFinds holds what the column form finds on a node against what the plain form found.
func sameFinds(t plugintest.Failer, s cluster.Snapshot, f *volumeFilter, node *cluster.Node, slow foundOnNode) {
	f.columns(s)
	switch code := f.quickly(s, node); {
	case code != slow.code:
		t.Fatalf("on %s: slowly %x, quickly %x", node.Name, slow.code, code)
	case code == plugin.Fit && !slices.Equal(f.cols.take, slow.take):
		t.Fatalf("on %s: slowly %v, quickly %v", node.Name, slow.take, f.cols.take)
	case code == plugin.Fit && !slices.Equal(f.cols.made, slow.make):
		t.Fatalf("on %s: slowly makes for %v, quickly for %v", node.Name, slow.make, f.cols.made)
	}
}

// Which volumes match claims. The pod's claims are for 2Gi of class local. Mutants: volume-size-ignored,
// volume-exact-rejected, volume-mode-ignored, volume-attributes-ignored, volume-leaving-taken, volume-phase-ignored,
// volume-selector-ignored, volume-access-ignored, volume-prebound-anywhere, volume-prebound-optional,
// volume-claim-uid-ignored, volume-largest-first, volume-no-beta-class.
func TestVolumeBindingFindsVolumes(t *testing.T) {
	block, file := v1.PersistentVolumeBlock, v1.PersistentVolumeFilesystem
	gold, none := "gold", ""
	mode := func(m v1.PersistentVolumeMode) volumeOption {
		return func(pv *v1.PersistentVolume) { pv.Spec.VolumeMode = &m }
	}
	attributes := func(class *string) volumeOption {
		return func(pv *v1.PersistentVolume) { pv.Spec.VolumeAttributesClassName = class }
	}
	phase := func(p v1.PersistentVolumePhase) volumeOption {
		return func(pv *v1.PersistentVolume) { pv.Status.Phase = p }
	}
	leaving := func(pv *v1.PersistentVolume) { pv.DeletionTimestamp = &metav1.Time{} }
	beta := func(class string) volumeOption {
		return func(pv *v1.PersistentVolume) {
			pv.Annotations = map[string]string{v1.BetaStorageClassAnnotation: class}
		}
	}
	inBlocks := func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block }
	golden := func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &gold }
	for _, story := range []struct {
		name    string
		options []claimOption
		volumes []*v1.PersistentVolume
		want    string
	}{
		{"just large enough", nil, []*v1.PersistentVolume{offered("a", "2Gi", "local")}, "c a"},
		{"too small", nil, []*v1.PersistentVolume{offered("a", "2047Mi", "local")}, ""},
		{"the smallest", nil, []*v1.PersistentVolume{offered("a", "5Gi", "local"), offered("b", "3Gi", "local"), offered("c", "4Gi", "local")}, "c b"},
		{"the first of equals", nil, []*v1.PersistentVolume{offered("b", "3Gi", "local"), offered("a", "3072Mi", "local")}, "c a"},
		{"of another class", nil, []*v1.PersistentVolume{offered("a", "2Gi", "remote"), offered("b", "2Gi", "")}, ""},
		{"of the class by annotation", nil, []*v1.PersistentVolume{offered("a", "2Gi", "remote", beta("local")), offered("b", "2Gi", "local", beta("remote"))}, "c a"},
		{"without a size", []claimOption{func(c *v1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil }}, []*v1.PersistentVolume{offered("a", "1", "local")}, "c a"},
		{"out of reach", nil, []*v1.PersistentVolume{offered("a", "2Gi", "local", only(within(zone, "b"))), offered("b", "9Gi", "local", only(within(zone, "a")))}, "c b"},
		{"an affinity that matches nothing", nil, []*v1.PersistentVolume{offered("a", "2Gi", "local", only(within("not a key!", "a")))}, ""},
		{"not available", nil, []*v1.PersistentVolume{offered("a", "2Gi", "local", phase(v1.VolumePending)), offered("b", "2Gi", "local", phase(v1.VolumeReleased)), offered("c", "2Gi", "local", phase(""))}, ""},
		{"being deleted", nil, []*v1.PersistentVolume{offered("a", "2Gi", "local", leaving)}, ""},
		{"claimed by another", nil, []*v1.PersistentVolume{offered("a", "2Gi", "local", claimedBy("d", ""))}, ""},
		{"a block device", nil, []*v1.PersistentVolume{offered("a", "2Gi", "local", mode(block)), offered("b", "3Gi", "local", mode(file))}, "c b"},
		{"a block device, as asked", []claimOption{inBlocks}, []*v1.PersistentVolume{offered("a", "2Gi", "local"), offered("b", "3Gi", "local", mode(block))}, "c b"},
		{"of another attributes class", nil, []*v1.PersistentVolume{offered("a", "2Gi", "local", attributes(&gold)), offered("b", "3Gi", "local", attributes(&none))}, "c b"},
		{"of the attributes class", []claimOption{golden}, []*v1.PersistentVolume{offered("a", "2Gi", "local"), offered("b", "3Gi", "local", attributes(&gold))}, "c b"},
		{"modes that are not all there", []claimOption{modes(v1.ReadWriteOnce, v1.ReadWriteMany)}, []*v1.PersistentVolume{offered("a", "2Gi", "local")}, ""},
		{"modes that are all there", []claimOption{modes(v1.ReadOnlyMany, v1.ReadWriteOnce)}, []*v1.PersistentVolume{offered("a", "2Gi", "local")}, "c a"},
		{"selected by label", []claimOption{selecting("tier", "fast")}, []*v1.PersistentVolume{offered("a", "2Gi", "local", labelled("tier", "slow")), offered("b", "3Gi", "local", labelled("tier", "fast"))}, "c b"},

		{"bound beforehand, though larger", nil, []*v1.PersistentVolume{offered("a", "2Gi", "local"), offered("b", "9Gi", "local", claimedBy("c", ""))}, "c b"},
		{"bound beforehand by UID", nil, []*v1.PersistentVolume{offered("a", "2Gi", "local"), offered("b", "9Gi", "local", claimedBy("c", "uid-c"))}, "c b"},
		{"bound to an earlier claim", nil, []*v1.PersistentVolume{offered("a", "5Gi", "local"), offered("b", "3Gi", "local", claimedBy("c", "uid-before"))}, "c a"},
		{"bound beforehand, in any phase, by any label, mode and selector", []claimOption{selecting("tier", "fast"), modes(v1.ReadWriteMany)},
			[]*v1.PersistentVolume{offered("b", "9Gi", "local", claimedBy("c", ""), phase(v1.VolumePending))}, "c b"},
		{"bound beforehand, and too small", nil, []*v1.PersistentVolume{offered("a", "2Gi", "local"), offered("b", "1Gi", "local", claimedBy("c", ""))}, "c a"},
		{"bound beforehand, and out of reach", nil, []*v1.PersistentVolume{offered("a", "2Gi", "local"), offered("b", "2Gi", "local", claimedBy("c", ""), only(within(zone, "b")))}, ""},
		{"two bound beforehand: the first decides", nil, []*v1.PersistentVolume{offered("a", "2Gi", "local", claimedBy("c", ""), only(within(zone, "b"))), offered("b", "2Gi", "local", claimedBy("c", ""))}, ""},
		{"bound beforehand in another class", nil, []*v1.PersistentVolume{offered("a", "2Gi", "local"), offered("b", "2Gi", "remote", claimedBy("c", ""))}, "c a"},
	} {
		t.Run(story.name, func(t *testing.T) {
			w := plugintest.NewCluster().With(plugintest.Node("n", plugintest.Labels(zone, "a")), storageClass("local", noProvisioner, later), wants("c", "2Gi", "local", story.options...))
			for _, pv := range story.volumes {
				w.With(pv)
			}
			want := []string{story.want}
			if story.want == "" {
				want = []string{nothingFound[1:]}
			}
			if got := finds(t, w, binding(), plugintest.Pod("p", mountsClaims("c")), "n"); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// Several claims of one pod. Mutants: volume-taken-twice, volume-claims-unsorted.
func TestVolumeBindingServesSeveralClaims(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("n"), storageClass("local", noProvisioner, later), storageClass("made", disk, later),
		wants("large", "5Gi", "local"), wants("small", "1Gi", "local"), wants("other", "1Gi", "local"), wants("huge", "50Gi", "local"),
		wants("made", "1Gi", "made"), wants("big-made", "9Gi", "made"), wants("chosen", "9Gi", "made", noteOnClaim(annSelectedNode, "n")),
		offered("a", "10Gi", "local"), offered("b", "5Gi", "local"), offered("c", "1Gi", "made"))
	for _, story := range []struct {
		claims []string
		want   []string
	}{
		{[]string{"large", "small"}, []string{"small b", "large a"}},
		{[]string{"small", "large"}, []string{"small b", "large a"}},
		{[]string{"small", "other"}, []string{"small b", "other a"}},
		{[]string{"other", "small"}, []string{"other b", "small a"}},
		{[]string{"small", "small"}, []string{"small b", "small a"}},
		{[]string{"small", "small", "small"}, []string{nothingFound[1:]}},
		{[]string{"small", "huge"}, []string{nothingFound[1:]}},
		{[]string{"made", "small"}, []string{"made c", "small b"}},
		{[]string{"big-made", "made"}, []string{"made c", "big-made make"}},
		{[]string{"big-made", "chosen", "small"}, []string{"small b", "chosen make", "big-made make"}},
	} {
		if got := finds(t, w, binding(), plugintest.Pod("p", mountsClaims(story.claims...)), "n"); !slices.Equal(got, story.want) {
			t.Errorf("%v: got %q, want %q", story.claims, got, story.want)
		}
	}
}

// bruteForce is the rule of matching, said once more: of the volumes that could be the claim's, one that names it must
// be it, and without one the smallest is. It is nil for none.
func bruteForce(claim *v1.PersistentVolumeClaim, volumes []*v1.PersistentVolume, taken []string, node *cluster.Node) *v1.PersistentVolume {
	bytes := func(l v1.ResourceList) float64 { q := l[v1.ResourceStorage]; return q.AsApproximateFloat64() }
	text := func(s *string) string { return fmt.Sprintf("%q", append([]string{}, nonEmpty(s)...)) }
	isBlock := func(m *v1.PersistentVolumeMode) bool { return m != nil && *m == v1.PersistentVolumeBlock }
	inReach := func(pv *v1.PersistentVolume) bool {
		if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
			return true
		}
		return slices.ContainsFunc(pv.Spec.NodeAffinity.Required.NodeSelectorTerms, func(term v1.NodeSelectorTerm) bool {
			return len(term.MatchExpressions) > 0 && !slices.ContainsFunc(term.MatchExpressions, func(e v1.NodeSelectorRequirement) bool {
				return e.Operator != v1.NodeSelectorOpIn && e.Operator != v1.NodeSelectorOpNotIn || len(e.Values) == 0 ||
					(e.Operator == v1.NodeSelectorOpIn) != slices.Contains(e.Values, node.Labels[e.Key])
			})
		})
	}
	var named, free []*v1.PersistentVolume
	for _, pv := range volumes {
		switch ref := pv.Spec.ClaimRef; {
		case slices.Contains(taken, pv.Name), pv.Spec.StorageClassName != *claim.Spec.StorageClassName, pv.DeletionTimestamp != nil,
			bytes(pv.Spec.Capacity) < bytes(claim.Spec.Resources.Requests), isBlock(pv.Spec.VolumeMode) != isBlock(claim.Spec.VolumeMode),
			text(pv.Spec.VolumeAttributesClassName) != text(claim.Spec.VolumeAttributesClassName):
		case ref != nil && ref.Name == claim.Name && ref.Namespace == claim.Namespace && (ref.UID == "" || ref.UID == claim.UID):
			named = append(named, pv)
		case ref != nil, pv.Status.Phase != v1.VolumeAvailable, !inReach(pv),
			claim.Spec.Selector != nil && !labels.SelectorFromSet(claim.Spec.Selector.MatchLabels).Matches(labels.Set(pv.Labels)),
			slices.ContainsFunc(claim.Spec.AccessModes, func(m v1.PersistentVolumeAccessMode) bool { return !slices.Contains(pv.Spec.AccessModes, m) }):
		default:
			free = append(free, pv)
		}
	}
	byName := func(a, b *v1.PersistentVolume) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) }
	if len(named) > 0 {
		if first := slices.MinFunc(named, byName); inReach(first) {
			return first
		}
		return nil
	}
	if len(free) == 0 {
		return nil
	}
	return slices.MinFunc(free, func(a, b *v1.PersistentVolume) int {
		if x, y := bytes(a.Spec.Capacity), bytes(b.Spec.Capacity); x != y {
			return slices.Compare([]float64{x}, []float64{y})
		}
		return byName(a, b)
	})
}

func nonEmpty(s *string) []string {
	if s == nil || *s == "" {
		return nil
	}
	return []string{*s}
}

// randomOffer is a volume that may suit randomWant.
func randomOffer(t *rapid.T, name string) *v1.PersistentVolume {
	pv := offered(name, plugintest.Pick(t, []string{"1Gi", "1024Mi", "2Gi", "3Gi", "3e9"}, "size"), plugintest.Pick(t, []string{"local", "local", "made"}, "class"))
	if plugintest.Chance(t, 20, "block") {
		block := plugintest.Pick(t, []v1.PersistentVolumeMode{v1.PersistentVolumeBlock, v1.PersistentVolumeFilesystem}, "mode")
		pv.Spec.VolumeMode = &block
	}
	if plugintest.Chance(t, 15, "attributes") {
		gold := plugintest.Pick(t, []string{"gold", ""}, "attributes")
		pv.Spec.VolumeAttributesClassName = &gold
	}
	if plugintest.Chance(t, 30, "claimed") {
		claim := plugintest.Pick(t, someWants, "claim")
		claimedBy(claim, plugintest.Pick(t, []string{"", "uid-" + claim, "uid-before"}, "uid"))(pv)
	}
	if plugintest.Chance(t, 10, "busy") {
		pv.Status.Phase = v1.VolumePending
	}
	if plugintest.Chance(t, 5, "leaving") {
		pv.DeletionTimestamp = &metav1.Time{}
	}
	if plugintest.Chance(t, 50, "label") {
		labelled("tier", plugintest.Pick(t, []string{"fast", "slow"}, "tier"))(pv)
	}
	if plugintest.Chance(t, 20, "shared") {
		pv.Spec.AccessModes = append(pv.Spec.AccessModes, v1.ReadWriteMany)
	}
	if plugintest.Chance(t, 70, "affinity") {
		var terms []v1.NodeSelectorTerm
		for range rapid.IntRange(0, 2).Draw(t, "terms") {
			terms = append(terms, randomReach(t))
		}
		only(terms...)(pv)
	}
	return pv
}

func randomReach(t *rapid.T) (place v1.NodeSelectorTerm) {
	for range rapid.IntRange(0, 2).Draw(t, "expressions") {
		op := plugintest.Pick(t, []v1.NodeSelectorOperator{v1.NodeSelectorOpIn, v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn}, "operator")
		values := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 2, rapid.ID[string]).Draw(t, "values")
		place.MatchExpressions = append(place.MatchExpressions, plugintest.Expression(plugintest.Pick(t, []string{zone, "rack"}, "key"), op, values...))
	}
	return place
}

var someWants = []string{"w0", "w1", "w2", "w3"}

func randomWant(t *rapid.T, name string) *v1.PersistentVolumeClaim {
	c := wants(name, plugintest.Pick(t, []string{"1Gi", "2Gi", "1500Mi"}, "size"), plugintest.Pick(t, []string{"local", "local", "made"}, "class"))
	if plugintest.Chance(t, 15, "no size") {
		c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: apiresource.Quantity{}}
	}
	if plugintest.Chance(t, 20, "block") {
		block := v1.PersistentVolumeBlock
		c.Spec.VolumeMode = &block
	}
	if plugintest.Chance(t, 15, "attributes") {
		gold := "gold"
		c.Spec.VolumeAttributesClassName = &gold
	}
	if plugintest.Chance(t, 20, "selector") {
		selecting("tier", "fast")(c)
	}
	if plugintest.Chance(t, 20, "shared") {
		modes(v1.ReadWriteMany, v1.ReadOnlyMany)(c)
	}
	return c
}

// Matching by the rules of the plugin and by brute force finds the same volume, for one claim after another.
func TestVolumeMatchingAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := plugintest.NewCluster().With(storageClass("local", noProvisioner, later), storageClass("made", disk, later))
		n := plugintest.Node("n", plugintest.Labels(zone, plugintest.Pick(t, []string{"a", "b"}, "zone")))
		if plugintest.Chance(t, 70, "rack") {
			plugintest.Labels("rack", plugintest.Pick(t, []string{"a", "c"}, "rack"))(n)
		}
		w.With(n)
		var volumes []*v1.PersistentVolume
		for i := range rapid.IntRange(0, 8).Draw(t, "volumes") {
			pv := randomOffer(t, fmt.Sprint("pv", i))
			volumes = append(volumes, pv)
			w.With(pv)
		}
		var claims []*v1.PersistentVolumeClaim
		var names []string
		for range rapid.IntRange(1, 3).Draw(t, "claims") {
			name := plugintest.Pick(t, someWants, "claim")
			if i := slices.Index(names, name); i >= 0 {
				claims = append(claims, claims[i])
			} else {
				claims = append(claims, randomWant(t, name))
			}
			names = append(names, name)
			w.With(claims[len(claims)-1])
		}

		bySize(claims)
		var want, made, taken []string
		for _, claim := range claims {
			row, _ := w.Store.Snapshot().Find("n")
			if pv := bruteForce(claim, volumes, taken, w.Store.Snapshot().Node(row)); pv != nil {
				want, taken = append(want, claim.Name+" "+pv.Name), append(taken, pv.Name)
			} else if *claim.Spec.StorageClassName == "local" {
				want = []string{nothingFound[1:]}
				made = nil
				break
			} else {
				made = append(made, claim.Name+" make")
			}
		}
		if got := finds(t, w, binding(), plugintest.Pod("p", mountsClaims(names...)), "n"); !slices.Equal(got, append(want, made...)) {
			t.Fatalf("got %q, want %q", got, append(want, made...))
		}
	})
}

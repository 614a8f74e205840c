// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math/rand/v2"

	"go.yaml.in/yaml/v3"
)

// mix is createPodMix, kumiki's own operation: pods of many families in an order that a seed draws. It never runs: the
// plan has the operations that were drawn in its place, so a plan shows what will happen.
//
// Each lot is some pods of one family. Family i is in namespace prefix-i; where names follow the index of a pod, which
// is so with volumes and groups, lot k of the plan has a namespace of its own, prefix-i-k.
type mix struct {
	ops      []Op
	collects bool
}

// Opcode is createPodMix.
func (*mix) Opcode() string { return "createPodMix" }

// mixFamily is one kind of pods of a mix.
type mixFamily struct {
	weight int
	// atMost pods of it are drawn; -1 for any number.
	atMost int
	pods   CreatePods // what all its lots have
	// group and groupSize are set for pods that come in groups; a lot has whole groups only.
	group     Template
	groupSize int
	alone     bool // each lot has a namespace of its own
}

func readMix(m *mapping) Op {
	m.need("namespacePrefix")
	out := &mix{collects: m.flag("collectMetrics")}
	prefix := m.text("namespacePrefix")
	m.needValue("seed")
	seed, _ := m.whole("seed", 0)
	pods, most := m.needCount("count"), m.count("most", 50)
	if most == 0 {
		m.in.mistake(m.line, "%s: most must be above 0", m.what)
	}
	var families []mixFamily
	fills := false // there is a family that takes what is left
	for _, node := range m.list("families") {
		f := m.in.mixFamily(node, most)
		fills = fills || f.groupSize <= 1 && f.atMost < 0 && f.weight > 0
		families = append(families, f)
	}
	if !fills && m.in.args != nil {
		m.in.mistake(m.line, "%s: one family must have neither groups nor atMost, to take what is left", m.what)
	}
	if m.in.args == nil || len(m.in.found) > 0 {
		return out
	}
	namespaces, ops := draw(families, prefix, uint64(seed), pods, most)
	if out.collects {
		out.ops = append(out.ops, &StartCollectingMetrics{Name: prefix, Namespaces: namespaces})
	}
	out.ops = append(append(out.ops, ops...), &Barrier{Namespaces: namespaces, Stage: Scheduled})
	if out.collects {
		out.ops = append(out.ops, &StopCollectingMetrics{})
	}
	return out
}

func (r *reading) mixFamily(node *yaml.Node, most int) mixFamily {
	m := r.mapping(node, "family")
	f := mixFamily{weight: m.count("weight", 1), atMost: m.count("atMost", -1), groupSize: m.count("groupSize", 0)}
	if (f.groupSize > 0) != m.has("groupTemplatePath") {
		r.mistake(m.line, "family: groupSize and groupTemplatePath: both or neither")
	}
	m.need("podTemplatePath")
	f.pods.SkipWait = true
	f.pods.Template = m.template("podTemplatePath", most, kindPod)
	f.pods.Volume = m.template("persistentVolumeTemplatePath", most, kindVolume)
	f.pods.Claim = m.template("persistentVolumeClaimTemplatePath", most, kindClaim)
	if m.has("persistentVolumeTemplatePath") != m.has("persistentVolumeClaimTemplatePath") {
		r.mistake(m.line, "family: persistentVolumeTemplatePath and persistentVolumeClaimTemplatePath: both or neither")
	}
	if m.has("groupTemplatePath") {
		f.group = m.needTemplate("groupTemplatePath", most, kindPodGroup)
	}
	f.alone = f.groupSize > 0 || f.pods.Volume != nil
	m.done()
	return f
}

// draw gives the lots, and the namespaces in the order in which they are used first. Each family has a lot before any has
// a second one, as far as the pods go.
func draw(families []mixFamily, prefix string, seed uint64, pods, most int) ([]string, []Op) {
	rng := rand.New(rand.NewPCG(seed, 0))
	left := make([]int, len(families)) // family -> pods that may still be drawn of it
	for i, f := range families {
		left[i] = pods
		if f.atMost >= 0 {
			left[i] = f.atMost
		}
		if f.weight == 0 {
			left[i] = 0
		}
	}
	var namespaces []string
	var ops []Op
	known := map[string]bool{} // namespace -> listed
	first := rng.Perm(len(families))
	for lot := 0; pods > 0; lot++ {
		i := choose(rng, families, left, pods)
		if lot < len(first) && families[first[lot]].lowest() <= min(left[first[lot]], pods) {
			i = first[lot]
		}
		f := &families[i]
		n := f.size(rng, min(most, left[i], pods))
		namespace := fmt.Sprintf("%s-%d", prefix, i)
		if f.alone {
			namespace = fmt.Sprintf("%s-%d-%d", prefix, i, lot)
		}
		if !known[namespace] {
			known[namespace] = true
			namespaces = append(namespaces, namespace)
		}
		if f.groupSize > 0 {
			ops = append(ops, &CreatePodGroups{Count: n / f.groupSize, Namespace: namespace, Template: f.group})
		}
		op := f.pods
		op.Count, op.Namespace = n, namespace
		ops = append(ops, &op)
		left[i] -= n
		pods -= n
	}
	return namespaces, ops
}

// lowest is the smallest lot.
func (f *mixFamily) lowest() int { return max(1, f.groupSize) }

// size draws how many pods a lot has, at most limit; limit must be enough for the smallest lot.
func (f *mixFamily) size(rng *rand.Rand, limit int) int {
	unit := f.lowest()
	return unit * (1 + rng.IntN(max(1, limit/unit)))
}

// choose draws a family by weight among those of which a lot still fits.
func choose(rng *rand.Rand, families []mixFamily, left []int, pods int) int {
	total := 0
	for i, f := range families {
		if f.lowest() <= min(left[i], pods) {
			total += f.weight
		}
	}
	at := rng.IntN(total) // the family that takes what is left is always among them
	for i, f := range families {
		if f.lowest() > min(left[i], pods) {
			continue
		}
		if at -= f.weight; at < 0 {
			return i
		}
	}
	panic(fmt.Sprintf("%d families with %d pods to draw: the weights changed", len(families), pods))
}

// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const mixYAML = `- name: Mix
  workloadTemplate:
  - opcode: createPodMix
    seedParam: $seed
    countParam: $pods
    mostParam: $most
    namespacePrefix: mix
    collectMetrics: true
    families:
    - {weight: 3, podTemplatePath: templates/pod.yaml}
    - {weight: 1, podTemplatePath: templates/node-pod.yaml, atMost: 7}
    - {weight: 5, podTemplatePath: templates/pod.yaml, persistentVolumeTemplatePath: templates/pv.yaml, persistentVolumeClaimTemplatePath: templates/pvc.yaml, atMostParam: $few}
    - {weight: 2, groupSize: 4, groupTemplatePath: templates/group.yaml, podTemplatePath: templates/gang.yaml, templateParams: {each: 4}}
    - {weight: 0, podTemplatePath: templates/pod.yaml}
  workloads:
  - name: one
    params: {seed: 1, pods: 200, most: 10, few: 20}
`

func loadMix(t interface{ Fatal(...any) }, text string) *Case {
	templates := map[string]string{
		"family/templates/node-pod.yaml": strings.Replace(podYAML, "pod-", "other-", 1),
		"family/templates/pv.yaml":       "kind: PersistentVolume\n",
		"family/templates/pvc.yaml":      "kind: PersistentVolumeClaim\n",
	}
	for name, body := range everyTemplate {
		templates[name] = body
	}
	f, err := LoadFS(folder(text, templates), "family/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return f.Cases[0]
}

// Catches: a lot that is larger than allowed, half a group, a family beyond its limit, a family that never comes, pods
// that are lost or too many, two lots of volumes in one namespace, a namespace that the barrier does not wait for, and an
// order that is not that of the seed.
func TestAMixIsWhatItsSeedDraws(t *testing.T) {
	c := loadMix(t, mixYAML)
	rapid.Check(t, func(t *rapid.T) {
		pods, most, few := rapid.IntRange(0, 400).Draw(t, "pods"), rapid.IntRange(4, 60).Draw(t, "most"), rapid.IntRange(0, 30).Draw(t, "few")
		w := c.Workloads[0].With("seed", rapid.IntRange(0, 1<<30).Draw(t, "seed")).With("pods", pods).With("most", most).With("few", few)
		p, err := c.Plan(w)
		if err != nil {
			t.Fatal(err)
		}
		again, err := c.Plan(w)
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Fatalf("the same seed gives another plan, or %v", err)
		}
		last := len(p.Ops) - 1
		start, stop := p.Ops[0].(*StartCollectingMetrics), p.Ops[last].(*StopCollectingMetrics)
		if barrier := p.Ops[last-1].(*Barrier); stop == nil || barrier.Stage != Scheduled || !reflect.DeepEqual(barrier.Namespaces, start.Namespaces) {
			t.Fatalf("the barrier waits for %v, measured are %v", barrier, start.Namespaces)
		}
		listed := map[string]bool{} // namespace -> measured
		for _, name := range start.Namespaces {
			listed[name] = true
		}
		drawn := map[string]int{} // family -> pods
		seen := map[string]bool{} // namespace of one lot -> used
		total, groups := 0, 0
		for _, op := range p.Ops[1 : last-1] {
			if g, ok := op.(*CreatePodGroups); ok {
				groups = g.Count
				continue
			}
			lot := op.(*CreatePods)
			family := strings.Split(lot.Namespace, "-")[1]
			if lot.Count < 1 || lot.Count > most || !lot.SkipWait || !listed[lot.Namespace] {
				t.Fatalf("lot %+v", lot)
			}
			alone := family == "2" || family == "3"
			if alone && seen[lot.Namespace] || alone != (strings.Count(lot.Namespace, "-") == 2) {
				t.Fatalf("namespace %s, family %s", lot.Namespace, family)
			}
			if family == "3" && (lot.Count%4 != 0 || groups != lot.Count/4) {
				t.Fatalf("%d pods for %d groups of 4", lot.Count, groups)
			}
			seen[lot.Namespace] = true
			drawn[family] += lot.Count
			total += lot.Count
		}
		if total != pods || drawn["1"] > 7 || drawn["2"] > few || drawn["4"] > 0 {
			t.Fatalf("%d pods of %d, by family: %v", total, pods, drawn)
		}
		if pods > 5*most && (drawn["0"] == 0 || drawn["1"] == 0 || few > 0 && drawn["2"] == 0 || drawn["3"] == 0) {
			t.Fatalf("a family is missing: %v", drawn)
		}
	})
}

// Catches: a seed that is read but not used.
func TestSeedsDrawDifferentMixes(t *testing.T) {
	c := loadMix(t, mixYAML)
	drawn := map[string]bool{} // plan -> met
	for seed := range 20 {
		p, err := c.Plan(c.Workloads[0].With("seed", seed))
		if err != nil {
			t.Fatal(err)
		}
		var lots []string
		for _, op := range p.Ops {
			if lot, ok := op.(*CreatePods); ok {
				lots = append(lots, fmt.Sprint(lot.Namespace, " ", lot.Count))
			}
		}
		drawn[strings.Join(lots, ",")] = true
	}
	if len(drawn) != 20 {
		t.Errorf("20 seeds drew %d mixes", len(drawn))
	}
	if c.Workloads[0].Params["seed"].Value != 1 {
		t.Error("With changed the workload that it was asked of")
	}
}

// Catches: a mix that would draw without end because no family may take what is left, and half an entry.
func TestMistakesOfAMix(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"nothing takes what is left", "- {weight: 3, podTemplatePath: templates/pod.yaml}", "- {weight: 3, podTemplatePath: templates/pod.yaml, atMost: 9}", "3: createPodMix: one family must have neither groups nor atMost"},
		{"group without a template", ", groupTemplatePath: templates/group.yaml", "", "13: family: groupSize and groupTemplatePath: both or neither"},
		{"volume without a claim", ", persistentVolumeClaimTemplatePath: templates/pvc.yaml", "", "12: family: persistentVolumeTemplatePath and"},
		{"family without pods", "{weight: 0, podTemplatePath: templates/pod.yaml}", "{weight: 0}", "14: family needs podTemplatePath"},
		{"unknown field", "weight: 0", "wait: 0", "14: family has no field wait"},
	} {
		_, err := planned(strings.Replace(mixYAML, c.old, c.new, 1), map[string]string{
			"family/templates/node-pod.yaml": podYAML, "family/templates/group.yaml": everyTemplate["family/templates/group.yaml"],
			"family/templates/gang.yaml": everyTemplate["family/templates/gang.yaml"], "family/templates/pv.yaml": "kind: PersistentVolume\n",
			"family/templates/pvc.yaml": "kind: PersistentVolumeClaim\n",
		})
		if err == nil || !strings.Contains(err.Error(), "family/config.yaml:"+c.want) {
			t.Errorf("%s: want %s, got %v", c.name, c.want, err)
		}
	}
}

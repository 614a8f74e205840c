// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// strategies are configurations that rank only some of the nodes that fit, and others that are no presets.
var strategies = map[string]string{ // name -> what the default file lacks
	"window (10 %)": "percentageOfNodesToScore: 10\n",
	"randomSubset (50)": "profiles:\n- schedulerName: default-scheduler\n  pluginConfig:\n  - name: Kumiki\n" +
		"    args: {strategy: randomSubset, subset: 50}\n",
	strict: "profiles:\n- schedulerName: default-scheduler\n  pluginConfig:\n  - name: Kumiki\n" +
		"    args: {preemption: {budgets: Strict}}\n",
	"powerOfTwo": "profiles:\n- schedulerName: default-scheduler\n  pluginConfig:\n  - name: Kumiki\n" +
		"    args: {strategy: powerOfTwo}\n",
}

// burst is pods that come one by one to nodes in zones.
type burst struct {
	key, name         string // key is the name of the column in commands
	nodes, zones      int
	loaded, preloaded int // the first nodes hold so many pods each
	pods              int
}

var bursts = []burst{
	{"9x90", "9 nodes in 3 zones, 90 pods", 9, 3, 0, 0, 90},
	{"500x5000", "500 nodes, 5,000 pods", 500, 3, 0, 0, 5000},
	{"250x7000", "250 nodes, half with 28 pods, 7,000 pods", 250, 3, 125, 28, 7000},
}

// spread shows the difference between the nodes, and between the zones, with most and fewest pods.
func spread(b *bench) error {
	names := b.shownRows("spread", upstream, dropIn, "window (10 %)", "randomSubset (50)", "powerOfTwo")
	columns := []string{"configuration"}
	for _, one := range bursts {
		columns = append(columns, one.name)
	}
	b.head(columns...)
	for _, name := range names {
		row := []string{name}
		for _, one := range bursts {
			all, err := overSeeds(b, name, one.key, b.seeds[:1], func(int64) (string, error) {
				return one.run(b, name)
			})
			if err != nil {
				return err
			}
			row = append(row, cell(func() string { return all[0] }, len(all), 1))
		}
		b.tableRow(row...)
	}
	return nil
}

// run returns max - min of pods on nodes and in zones.
func (b *burst) run(o *bench, name string) (string, error) {
	var nodes []*v1.Node
	counts, zones := map[string]int{}, map[string]int{} // node, zone -> pods
	for i := range b.nodes {
		name := fmt.Sprintf("node-%03d", i)
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{
			v1.LabelHostname: name, v1.LabelTopologyZone: zone(i, b.zones)}}}
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("64"),
			v1.ResourceMemory: apiresource.MustParse("256Gi"), v1.ResourcePods: apiresource.MustParse("110")}
		nodes = append(nodes, n)
		counts[name] = 0
	}
	p, err := o.placer(name, nil, 1)(nodes, nil)
	if err != nil {
		return "", err
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "p"}}
	pod.Spec.SchedulerName = v1.DefaultSchedulerName
	pod.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
		v1.ResourceCPU: apiresource.MustParse("500m"), v1.ResourceMemory: apiresource.MustParse("1Gi")}}}}
	template := p.Template(pod)
	for i := range b.loaded {
		for range b.preloaded {
			p.Put(template, nodes[i].Name)
			counts[nodes[i].Name]++
		}
	}
	for i := range b.pods {
		on := p.Place(template).NodeName
		if on == "" {
			return "", cmp.Or(p.Err(), fmt.Errorf("%s: pod %d was not placed", b.name, i))
		}
		counts[on]++
	}
	for i, n := range nodes {
		zones[zone(i, b.zones)] += counts[n.Name]
	}
	return fmt.Sprintf("%d, zones %d", difference(counts), difference(zones)), nil
}

func zone(i, zones int) string { return fmt.Sprint("zone-", i%zones) }

// difference returns the largest less the smallest count.
func difference(counts map[string]int) int {
	low, high, first := 0, 0, true
	for _, n := range counts { // order: an extreme is the same in any
		if first || n < low {
			low = n
		}
		if first || n > high {
			high = n
		}
		first = false
	}
	return high - low
}

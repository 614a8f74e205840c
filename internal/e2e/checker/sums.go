// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"fmt"
	"math/big"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// amounts are exact quantities in billionths.
type amounts map[v1.ResourceName]*big.Int // resource -> billionths

// billionths is the exact value of q times 10^9; what is smaller is rounded up.
func billionths(q resource.Quantity) *big.Int {
	own := q.DeepCopy() // AsDec changes it
	d := own.AsDec()
	exponent := 9 - int(d.Scale())
	value := new(big.Int).Set(d.UnscaledBig())
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exponent, -exponent))), nil)
	if exponent >= 0 {
		return value.Mul(value, power)
	}
	rest := new(big.Int)
	value.QuoRem(value, power, rest)
	if rest.Sign() > 0 {
		value.Add(value, big.NewInt(1))
	}
	return value
}

func of(list v1.ResourceList) amounts {
	out := amounts{}
	for name, q := range list {
		out[name] = billionths(q)
	}
	return out
}

func (a amounts) add(b amounts) {
	for name, n := range b {
		if a[name] == nil {
			a[name] = new(big.Int)
		}
		a[name].Add(a[name], n)
	}
}

func (a amounts) atLeast(b amounts) {
	for name, n := range b {
		if a[name] == nil || a[name].Cmp(n) < 0 {
			a[name] = new(big.Int).Set(n)
		}
	}
}

// request is what a pod takes: the sum of its containers and sidecars, or an init container together with the sidecars
// started before it if that is more; at the pod's own level where it states one; plus overhead.
func request(p *v1.Pod) amounts {
	total, sidecars, peak := amounts{}, amounts{}, amounts{}
	for i := range p.Spec.Containers {
		total.add(of(p.Spec.Containers[i].Resources.Requests))
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		own := of(c.Resources.Requests)
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			total.add(own)
			sidecars.add(own)
			peak.atLeast(sidecars)
			continue
		}
		own.add(sidecars)
		peak.atLeast(own)
	}
	total.atLeast(peak)
	if p.Spec.Resources != nil {
		for name, n := range of(p.Spec.Resources.Requests) {
			total[name] = n
		}
	}
	total.add(of(p.Spec.Overhead))
	return total
}

// Sums finds nodes that hold more than they offer, and pods that a kubelet refused. Pods that have ended take nothing.
// The findings are sorted.
func Sums(nodes []v1.Node, pods []v1.Pod) []string {
	var found []string
	held := map[string]amounts{} // node -> sum of requests
	count := map[string]int{}    // node -> pods
	uids := map[string]string{}  // UID -> pod
	for i := range pods {
		p := &pods[i]
		name := p.Namespace + "/" + p.Name
		if other, twice := uids[string(p.UID)]; twice {
			found = append(found, fmt.Sprintf("pods %s and %s have one UID", other, name))
		}
		uids[string(p.UID)] = name
		if p.Status.Phase == v1.PodFailed {
			found = append(found, fmt.Sprintf("pod %s failed on node %s: %s: %s", name, p.Spec.NodeName, p.Status.Reason, p.Status.Message))
		}
		if p.Spec.NodeName == "" || p.Status.Phase == v1.PodFailed || p.Status.Phase == v1.PodSucceeded {
			continue
		}
		if held[p.Spec.NodeName] == nil {
			held[p.Spec.NodeName] = amounts{}
		}
		held[p.Spec.NodeName].add(request(p))
		count[p.Spec.NodeName]++
	}
	for i := range nodes {
		n := &nodes[i]
		offers := of(n.Status.Allocatable)
		for name, taken := range held[n.Name] {
			offered := offers[name]
			if offered == nil {
				offered = new(big.Int)
			}
			if taken.Cmp(offered) > 0 {
				found = append(found, fmt.Sprintf("node %s: pods ask for %s of %s, it offers %s (in billionths)", n.Name, taken, name, offered))
			}
		}
		pods := n.Status.Allocatable[v1.ResourcePods]
		if int64(count[n.Name]) > pods.Value() {
			found = append(found, fmt.Sprintf("node %s: holds %d pods, it offers %s", n.Name, count[n.Name], pods.String()))
		}
		delete(held, n.Name)
	}
	for name := range held {
		found = append(found, fmt.Sprintf("node %s: holds %d pods and does not exist", name, count[name]))
	}
	slices.Sort(found)
	return found
}

// SPDX-License-Identifier: Apache-2.0

package admission

import (
	v1 "k8s.io/api/core/v1"
)

// Usage is what the admitted pods of one node hold. The zero value is not
// usable; see NewUsage. It is not safe for concurrent use.
type Usage struct {
	pods int
	// requested: resource name -> sum of the admitted pods' requests.
	requested map[v1.ResourceName]int64
	// ports: taken port -> number of admitted pods that asked for it.
	ports map[hostPort]int
}

// Share is what one pod added to a Usage; removing exactly that keeps the sums
// right whatever the pod's object says later.
type Share struct {
	requested map[v1.ResourceName]int64
	ports     []hostPort
}

type hostPort struct {
	ip       string
	protocol v1.Protocol
	port     int32
}

// NewUsage is the usage of an empty node.
func NewUsage() *Usage {
	return &Usage{requested: map[v1.ResourceName]int64{}, ports: map[hostPort]int{}}
}

// Add counts an admitted pod and tells what it added.
func (u *Usage) Add(pod *v1.Pod) Share {
	s := Share{requested: amounts(admittedRequests(pod)), ports: hostPorts(pod)}
	u.pods++
	for name, n := range s.requested {
		u.requested[name] += n
	}
	for _, p := range s.ports {
		u.ports[p]++
	}
	return s
}

// Remove takes back what Add added.
func (u *Usage) Remove(s Share) {
	u.pods--
	for name, n := range s.requested {
		if u.requested[name] -= n; u.requested[name] == 0 {
			delete(u.requested, name)
		}
	}
	for _, p := range s.ports {
		if u.ports[p]--; u.ports[p] == 0 {
			delete(u.ports, p)
		}
	}
}

// Pods is how many pods the node holds.
func (u *Usage) Pods() int { return u.pods }

// anyIP is the host address that stands for all of them.
const anyIP = "0.0.0.0"

// hostPorts are the ports that the pod takes on its node as long as it runs:
// those of containers and of init containers that keep running.
func hostPorts(pod *v1.Pod) []hostPort {
	var out []hostPort
	collect := func(c *v1.Container) {
		for _, p := range c.Ports {
			if p.HostPort <= 0 {
				continue
			}
			hp := hostPort{ip: p.HostIP, protocol: p.Protocol, port: p.HostPort}
			if hp.ip == "" {
				hp.ip = anyIP
			}
			if hp.protocol == "" {
				hp.protocol = v1.ProtocolTCP
			}
			out = append(out, hp)
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			collect(c)
		}
	}
	for i := range pod.Spec.Containers {
		collect(&pod.Spec.Containers[i])
	}
	return out
}

// portsTaken reports whether the pod wants a port that is taken. The address
// 0.0.0.0 collides with every address.
func (u *Usage) portsTaken(pod *v1.Pod) bool {
	for _, want := range hostPorts(pod) {
		for taken := range u.ports {
			if taken.port == want.port && taken.protocol == want.protocol &&
				(taken.ip == want.ip || taken.ip == anyIP || want.ip == anyIP) {
				return true
			}
		}
	}
	return false
}

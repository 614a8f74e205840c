// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// Placer has a scheduler place pods one by one. Binds succeed at once, and a pod that is not placed is deleted.
type Placer interface {
	// Template converts a pod, so that many like it can be placed.
	Template(*v1.Pod) *cluster.Pod
	// Place creates a pod of a template, and returns it with its node; the node is empty if the pod was not placed.
	Place(template *cluster.Pod) *cluster.Pod
	// Put shows the scheduler a pod of a template that is bound to a node already.
	Put(template *cluster.Pod, node string) *cluster.Pod
	// Remove ends a pod that was placed.
	Remove(*cluster.Pod)
	// Err returns why the placements are not to be used; nil if they are.
	Err() error
}

// Request is what a Remote asks, a JSON value in a line. One field is set.
type Request struct {
	Start    *StartRequest `json:",omitempty"`
	Template *v1.Pod       `json:",omitempty"` // the next template; they are numbered from 0
	Place    *PodRequest   `json:",omitempty"`
	Put      *PodRequest   `json:",omitempty"` // with its node
	Remove   string        `json:",omitempty"` // name of a pod
	Submit   *GangRequest  `json:",omitempty"`
	Settle   bool          `json:",omitempty"` // try what waits
	End      string        `json:",omitempty"` // name of a gang
}

// StartRequest begins a cluster anew.
type StartRequest struct {
	Seed  int64
	Nodes []*v1.Node
	// Devices reports whether the nodes have GPUs of which pods request shares; see Devices.
	Devices bool
}

// PodRequest is a pod of a template.
type PodRequest struct {
	Template   int
	Name, Node string
}

// GangRequest is a gang of pods of a template. Its pods are named NAME-0, NAME-1 and so on.
type GangRequest struct {
	Template int
	Name     string
	Pods     int
}

// Response is the answer to a Request, a JSON value in a line.
type Response struct {
	Node  string            `json:",omitempty"`
	Nodes map[string]string `json:",omitempty"` // pod -> node, of the pods that were bound
	Error string            `json:",omitempty"`
}

// Remote is a scheduler in another process, to which requests are written, and from which responses are read.
type Remote struct {
	out       *json.Encoder
	in        *json.Decoder
	templates map[*cluster.Pod]int // template -> number
	made      int
	err       error // the first one
}

// NewRemote returns a Remote without a cluster.
func NewRemote(out io.Writer, in io.Reader) *Remote {
	return &Remote{out: json.NewEncoder(out), in: json.NewDecoder(in)}
}

// Start begins a cluster anew.
func (r *Remote) Start(s StartRequest) {
	r.templates, r.made = map[*cluster.Pod]int{}, 0
	r.ask(Request{Start: &s})
}

// Err returns the first error.
func (r *Remote) Err() error { return r.err }

func (r *Remote) ask(q Request) (a Response) {
	if r.err != nil {
		return a
	}
	err := r.out.Encode(q)
	if err == nil {
		err = r.in.Decode(&a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil {
		r.err = fmt.Errorf("asking another scheduler: %w", err)
		return Response{}
	}
	return a
}

// Template sends a template.
func (r *Remote) Template(pod *v1.Pod) *cluster.Pod {
	t := &cluster.Pod{}
	r.templates[t] = len(r.templates)
	r.ask(Request{Template: pod})
	return t
}

func (r *Remote) next(template *cluster.Pod) *PodRequest {
	r.made++
	return &PodRequest{Template: r.templates[template], Name: fmt.Sprint("pod-", r.made)}
}

// Place creates a pod of a template.
func (r *Remote) Place(template *cluster.Pod) *cluster.Pod {
	q := r.next(template)
	a := r.ask(Request{Place: q})
	p := &cluster.Pod{NodeName: a.Node}
	p.Name = q.Name
	return p
}

// Put shows a pod that is bound.
func (r *Remote) Put(template *cluster.Pod, node string) *cluster.Pod {
	q := r.next(template)
	q.Node = node
	r.ask(Request{Put: q})
	p := &cluster.Pod{NodeName: node}
	p.Name = q.Name
	return p
}

// Remove ends a pod.
func (r *Remote) Remove(pod *cluster.Pod) { r.ask(Request{Remove: pod.Name}) }

// Submit creates a gang.
func (r *Remote) Submit(template *cluster.Pod, name string, pods int) {
	r.ask(Request{Submit: &GangRequest{r.templates[template], name, pods}})
}

// Settle tries what waits, and returns the pods that were bound: pod -> node.
func (r *Remote) Settle() map[string]string { return r.ask(Request{Settle: true}).Nodes }

// End ends a gang.
func (r *Remote) End(gang string) { r.ask(Request{End: gang}) }

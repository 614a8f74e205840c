// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/sim/quality"
)

// server answers the requests of a quality.Remote.
type server struct {
	sched     *Scheduler
	devices   *sharedDevices // nil without
	templates []*v1.Pod
	pods      map[string]*v1.Pod // name -> pod that is not gone
	gangs     map[string]*gang   // name -> gang that is not gone
}

type gang struct {
	group *schedulingv1beta1.PodGroup
	pods  []*v1.Pod
}

// Serve answers requests until there are no more.
func Serve(in io.Reader, out io.Writer) error {
	requests := json.NewDecoder(in)
	buffered := bufio.NewWriter(out)
	responses := json.NewEncoder(buffered)
	s := &server{}
	for {
		var q quality.Request
		if err := requests.Decode(&q); errors.Is(err, io.EOF) {
			return s.close()
		} else if err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		a, err := s.answer(&q)
		if err != nil {
			a.Error = err.Error()
		}
		if err := errors.Join(responses.Encode(a), buffered.Flush()); err != nil {
			return fmt.Errorf("write a response: %w", err)
		}
	}
}

func (s *server) close() error {
	if s.sched == nil {
		return nil
	}
	return s.sched.Close()
}

func (s *server) answer(q *quality.Request) (a quality.Response, err error) {
	switch {
	case q.Start != nil:
		return a, s.start(q.Start)
	case s.sched == nil:
		return a, errors.New("the first request must be Start")
	case q.Template != nil:
		s.templates = append(s.templates, q.Template)
	case q.Place != nil:
		p, err := s.sched.Place(s.pod(q.Place))
		if err != nil {
			return a, err
		}
		if a.Node = p.Spec.NodeName; a.Node != "" {
			s.keep(p)
		}
	case q.Put != nil:
		p := s.pod(q.Put)
		p.Spec.NodeName = q.Put.Node
		s.sched.Create(p)
		s.keep(p)
	case q.Remove != "":
		return a, s.remove(q.Remove)
	case q.Submit != nil:
		s.submit(q.Submit)
	case q.Settle:
		placed, err := s.sched.Settle()
		a.Nodes = map[string]string{}
		for _, p := range placed {
			a.Nodes[p.Name] = p.Spec.NodeName
		}
		return a, err
	case q.End != "":
		return a, s.end(q.End)
	}
	return a, nil
}

func (s *server) start(q *quality.StartRequest) (err error) {
	if err := s.close(); err != nil {
		return err
	}
	*s = server{pods: map[string]*v1.Pod{}, gangs: map[string]*gang{}}
	if q.Devices {
		s.devices = newDevices(q.Nodes)
	}
	if s.sched, err = New(q.Seed, s.devices.registry()); err != nil {
		return err
	}
	for _, n := range q.Nodes {
		s.sched.Set(n)
	}
	return nil
}

// pod returns a new pod of a template.
func (s *server) pod(q *quality.PodRequest) *v1.Pod {
	p := *s.templates[q.Template]
	p.Name, p.UID = q.Name, types.UID(q.Name)
	return &p
}

// keep notes a pod that is bound.
func (s *server) keep(p *v1.Pod) {
	s.pods[p.Name] = p
	s.devices.take(p)
}

func (s *server) remove(name string) error {
	p := s.pods[name]
	if p == nil {
		return fmt.Errorf("remove: there is no pod %s", name)
	}
	delete(s.pods, name)
	s.devices.release(p)
	s.sched.Delete(p)
	return nil
}

// submit creates a pod group with its pods; a single pod has none.
func (s *server) submit(q *quality.GangRequest) {
	g := &gang{}
	if q.Pods > 1 {
		g.group = &schedulingv1beta1.PodGroup{}
		g.group.Namespace, g.group.Name = s.templates[q.Template].Namespace, q.Name
		g.group.UID = types.UID("group-" + q.Name)
		g.group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(q.Pods)}
		s.sched.Set(g.group)
	}
	for i := range q.Pods {
		p := s.pod(&quality.PodRequest{Template: q.Template, Name: fmt.Sprintf("%s-%d", q.Name, i)})
		if g.group != nil {
			p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &g.group.Name}
		}
		g.pods = append(g.pods, p)
		s.sched.Create(p)
	}
	s.gangs[q.Name] = g
}

func (s *server) end(name string) error {
	g := s.gangs[name]
	if g == nil {
		return fmt.Errorf("end: there is no gang %s", name)
	}
	delete(s.gangs, name)
	for _, p := range g.pods {
		s.sched.Delete(p)
	}
	if g.group != nil {
		s.sched.DeleteGroup(g.group)
	}
	return nil
}

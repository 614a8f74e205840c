// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/record"
)

// A recording is a text of lines. Inputs are
//
//	{"engine":{…}}                  an engine that knows nothing; the one before it has ended (a restart)
//	{"event":NAME,"data":{…}}       an event, as kumiki --record writes it
//	{"question":[WHAT,…]}           a question to the engine, which changes nothing
//
// and each is followed by its results:
//
//	{"effect":NAME,"data":{…}}      an effect, as kumiki --record writes it
//	{"asked":"…"}                   a question that the engine asked foreign code
//	{"answer":{…}}                  the answer to a question
//	{"broken":"…"}                  a panic, or an event whose encoding has changed
//
// The first line is {"source":NAME}.

// recordingStep is an input of a recording and the lines of its results.
type recordingStep struct{ input, then []byte }

// event reports whether the input of a step is an event, and not a question or a new engine.
func (s *recordingStep) event() bool { return bytes.HasPrefix(s.input, []byte(`{"event":`)) }

func (s *recordingStep) restart() bool { return bytes.HasPrefix(s.input, []byte(`{"engine":`)) }

// models reports whether s begins a recording of a model of another scheduler. The engine has none of them: see
// bench/gangs.
func (s *recordingStep) models() bool {
	var l struct{ Engine engineSetup }
	return json.Unmarshal(s.input, &l) == nil && l.Engine.Style != "" && l.Engine.Style != "transaction"
}

// readRecording splits a recording.
func readRecording(raw []byte) (source string, steps []recordingStep, err error) {
	first, rest, _ := bytes.Cut(raw, []byte("\n"))
	var head struct{ Source string }
	if err := json.Unmarshal(first, &head); err != nil || head.Source == "" {
		return "", nil, fmt.Errorf("the first line names no source: %q: %v", first, err)
	}
	for line := range bytes.Lines(rest) {
		switch {
		case bytes.HasPrefix(line, []byte(`{"event":`)), bytes.HasPrefix(line, []byte(`{"engine":`)), bytes.HasPrefix(line, []byte(`{"question":`)):
			steps = append(steps, recordingStep{input: line})
		case len(steps) == 0:
			return "", nil, fmt.Errorf("a line before all inputs: %s", line)
		default:
			last := &steps[len(steps)-1]
			last.then = append(last.then, line...)
		}
	}
	return head.Source, steps, nil
}

// player plays the inputs of a recording.
type player struct {
	engine  *engine.Engine
	tape    *recording.Reader
	foreign *recordedForeign
}

// take plays one input and returns the lines of its results. Foreign code answers as the recorded results say.
func (p *player) take(s recordingStep) (then []byte) {
	defer func() {
		if r := recover(); r != nil {
			then = append(then, lineOf("broken", fmt.Sprint(r))...)
		}
	}()
	switch {
	case s.restart():
		var l struct{ Engine engineSetup }
		if err := json.Unmarshal(s.input, &l); err != nil {
			return lineOf("broken", err.Error())
		}
		p.tape, p.foreign = recording.NewReader(), &recordedForeign{}
		var err error
		if p.engine, err = l.Engine.engine(p.foreign); err != nil {
			return lineOf("broken", err.Error())
		}
	case s.event():
		ev, _, err := p.tape.Event(bytes.TrimSpace(s.input))
		if err != nil {
			return lineOf("broken", err.Error())
		}
		if again := recording.AppendEvent(nil, ev); !bytes.Equal(again, s.input) {
			return lineOf("broken", "the encoding of the event has changed: "+string(again))
		}
		if answers, err := recording.Answers(bytes.Split(s.then, []byte("\n"))); err == nil {
			p.foreign.SetAnswers(answers.Answers)
		}
		then = recording.AppendEffects(nil, p.engine.Step(ev))
	default:
		var l struct{ Question []string }
		if err := json.Unmarshal(s.input, &l); err != nil {
			return lineOf("broken", err.Error())
		}
		then = lineOf("answer", answerTo(p.engine, l.Question))
	}
	for _, asked := range p.foreign.asked {
		then = append(then, lineOf("asked", asked)...)
	}
	p.foreign.asked = nil
	return then
}

func lineOf(name string, value any) []byte {
	raw, err := json.Marshal(map[string]any{name: value})
	if err != nil {
		panic(err)
	}
	return append(raw, '\n')
}

// answerTo is the answer of an engine to a question:
//
//	queue                            the report of the queue, and the counters of the engine
//	pods                             the node of each pod
//	pod NAMESPACE NAME UID           the report of a pod, and the judgements of it on the first nodes
//	node NAME                        the report of a node
//	gang NAMESPACE NAME              the report of a gang
//	if pod|gang NAMESPACE NAME CONDITION...
func answerTo(e *engine.Engine, question []string) any {
	what, of := question[0], question[1:]
	switch what {
	case "queue":
		return map[string]any{"queue": inspect(e).QueueReport(), "inFlightEvents": e.InFlightEvents(), "binding": e.Binding(), "ready": e.Ready(),
			"now": e.Now(), "revision": e.Snapshot().Revision()}
	case "pods":
		var list []string
		inspect(e).EachPod(func(pod record.PodRef, node string, assumed bool) {
			list = append(list, fmt.Sprintf("%s %s on %q, assumed %v", pod.Key(), pod.UID, node, assumed))
		})
		return list
	case "pod":
		report, known := inspect(e).ExplainPod(of[0], of[1])
		answer := map[string]any{"known": known, "report": report}
		var nodes []string
		inspect(e).EachNode(func(name string) { nodes = append(nodes, name) })
		for _, node := range nodes[:min(len(nodes), 4)] {
			if j, judged := inspect(e).CompareBind(cluster.UID(of[2]), node); judged {
				answer["on "+node] = j
			}
		}
		return answer
	case "node":
		report, known := inspect(e).ExplainNode(of[0])
		return map[string]any{"known": known, "report": report}
	case "gang":
		report, known := inspect(e).ExplainGang(of[0], of[1])
		return map[string]any{"known": known, "report": report}
	case "if":
		ask := inspect(e).WhatIfPod
		if of[0] == "gang" {
			ask = inspect(e).WhatIfGang
		}
		report, err := ask(of[1], of[2], of[3:])
		var no *record.Refusal
		if errors.As(err, &no) {
			return map[string]any{"refused": no}
		} else if err != nil {
			return map[string]any{"error": err.Error()}
		}
		return report
	}
	panic(fmt.Sprintf("no question %q", what))
}

// recorder is the recording that is being made; nil for none.
var recorder *recordedEngine

// recordedEngine collects the inputs of an engine.
type recordedEngine struct {
	steps  []recordingStep
	engine *engine.Engine // whose steps are recorded
	plain  bool           // the recording is of the slow twin
	// Objects in the events, for the questions at the end of the engine.
	pods, nodes, gangs subjects
	events             int // of the engine
}

// subjects are the objects of questions, each once, in the order of their first events.
type subjects struct {
	known map[string]bool // words, joined -> true
	list  [][]string
}

func (a *subjects) add(words ...string) {
	key := strings.Join(words, " ")
	if a.known == nil {
		a.known = map[string]bool{}
	}
	if !a.known[key] {
		a.known[key] = true
		a.list = append(a.list, words)
	}
}

// recordedStep gives an engine an event, checks its invariants, and records the event if a recording is being made.
func recordedStep(e *engine.Engine, ev engine.Event) []engine.Effect {
	if recorder != nil {
		recorder.follow(e)
		recorder.note(ev)
		recorder.steps = append(recorder.steps, recordingStep{input: recording.AppendEvent(nil, ev)})
	}
	effects := e.Step(ev)
	engine.Invariants(e)
	if counted != nil {
		counted.follow(e, ev, effects)
	}
	if recorder != nil {
		recorder.steps[len(recorder.steps)-1].then = recording.AppendEffects(nil, effects)
		if recorder.events++; recorder.events%16 == 0 {
			recorder.question("queue")
		}
	}
	return effects
}

// recordQuestion records a question that a test has asked.
func recordQuestion(e *engine.Engine, question []string) {
	if recorder != nil && recorder.engine == e {
		recorder.question(question...)
	}
}

// question adds a question. Its answer is that of the first play.
func (r *recordedEngine) question(words ...string) {
	r.steps = append(r.steps, recordingStep{input: lineOf("question", words)})
}

// follow starts to record an engine, unless it is the one whose steps are recorded.
func (r *recordedEngine) follow(e *engine.Engine) {
	if r.engine == e {
		return
	}
	r.end()
	setup := setupOf(e)
	setup.Plain = setup.Plain || r.plain
	r.engine = e
	r.steps = append(r.steps, recordingStep{input: lineOf("engine", setup)})
}

// note adds the object of an event to the subjects of questions.
func (r *recordedEngine) note(ev engine.Event) {
	switch ev := ev.(type) {
	case engine.NodeSet:
		r.nodes.add(ev.Node.Name)
	case engine.PodSet:
		r.pods.add(ev.Pod.Namespace, ev.Pod.Name, string(ev.Pod.UID))
		if ev.Pod.Gang != nil {
			r.gangs.add(ev.Pod.Gang.Key.Namespace, ev.Pod.Gang.Key.Name)
		}
	case engine.ObjectSet:
		if g, is := ev.Object.(*cluster.Gang); is {
			r.gangs.add(g.Key.Namespace, g.Key.Name)
		}
	}
}

// end adds the questions at the end of an engine.
func (r *recordedEngine) end() {
	if r.engine == nil {
		return
	}
	r.question("queue")
	r.question("pods")
	const most = 24 // of a kind; the newest
	for _, words := range r.nodes.list[max(0, len(r.nodes.list)-most):] {
		r.question(append([]string{"node"}, words...)...)
	}
	for _, words := range r.gangs.list[max(0, len(r.gangs.list)-most):] {
		r.question(append([]string{"gang"}, words...)...)
	}
	for i, words := range r.pods.list[max(0, len(r.pods.list)-most):] {
		r.question(append([]string{"pod"}, words...)...)
		if len(r.nodes.list) > 0 && i%4 == 0 {
			r.question("if", "pod", words[0], words[1], "drain node/"+r.nodes.list[i%len(r.nodes.list)][0])
			r.question("if", "pod", words[0], words[1], "delete pod/"+r.pods.list[0][1], "add-nodes 1 like node/"+r.nodes.list[0][0])
		}
	}
	*r = recordedEngine{steps: r.steps, plain: r.plain}
}

// text plays the inputs and returns the recording. It is an error if the events have other effects than when they
// were collected: then a file cannot hold what the engine depends on.
func (r *recordedEngine) text(source string) ([]byte, error) {
	r.end()
	text, p := lineOf("source", source), &player{}
	for i, s := range r.steps {
		then := p.take(s)
		if s.event() && !bytes.Equal(effectsIn(then), s.then) {
			return nil, fmt.Errorf("%s cannot be recorded: step %d plays otherwise\n%s--- in the test\n%s--- played\n%s", source, i, s.input, s.then, then)
		}
		text = append(append(text, s.input...), then...)
	}
	return text, nil
}

// effectsIn are the results of an input without the questions to foreign code.
func effectsIn(then []byte) (effects []byte) {
	for line := range bytes.Lines(then) {
		if !bytes.HasPrefix(line, []byte(`{"asked":`)) {
			effects = append(effects, line...)
		}
	}
	return effects
}

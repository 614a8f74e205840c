// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"errors"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/record"
)

// May reports whether the identity behind a request may use a verb on a pod, or with an empty name on all pods of a
// namespace. denied is the reason if it may not. It is an alias, so that API implements an interface of the server.
type May = func(ctx context.Context, verb, namespace, name string) (allowed bool, denied string, err error)

// Limits on identities that may see single namespaces. They cannot keep the scheduler or its operators waiting.
const (
	// narrowWaiting is how many of their questions may wait; one is answered at a time.
	narrowWaiting = 32
	// narrowShare: after a question that took t, the next one is put after a further (narrowShare-1)*t.
	narrowShare = 5
	// maxNarrowWatchers is how many of maxWatchers streams of moves they may open.
	maxNarrowWatchers = maxWatchers / 2
)

// narrowGate bounds the questions of identities that may see single namespaces.
type narrowGate struct {
	waiting chan struct{} // one item for each question that waits or is answered
	turn    chan struct{} // one item for the question that is answered
	watches chan struct{} // one item for each stream of moves
}

func newNarrowGate() narrowGate {
	return narrowGate{
		make(chan struct{}, narrowWaiting), make(chan struct{}, 1), make(chan struct{}, maxNarrowWatchers),
	}
}

var errTooMany = errors.New("too many questions of users who may see single namespaces wait")

// ask runs a question when it is its turn.
func (g *narrowGate) ask(ctx context.Context, question func()) error {
	select {
	case g.waiting <- struct{}{}:
		defer func() { <-g.waiting }()
	default:
		return errTooMany
	}
	select {
	case g.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	began := time.Now()
	defer func() { // the turn ends later than the answer
		rest := (narrowShare - 1) * time.Since(began)
		time.AfterFunc(rest, func() { <-g.turn })
	}()
	question()
	return nil
}

// narrow answers one identity that may see single namespaces.
type narrow struct {
	v   *View
	may May
}

// ServeNarrow answers an identity that may not read Prefix: about pods that it may get and their gangs, and about the
// queue and the gangs of a namespace whose pods it may list, without names of other namespaces. may is asked for each
// request.
func (a *API) ServeNarrow(w http.ResponseWriter, r *http.Request, may May) {
	n := narrow{a.v, may}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Prefix+"why/pod/{namespace}/{name}", n.servePod)
	mux.HandleFunc("GET "+Prefix+"why/gang/{namespace}/{name}", n.serveGang)
	mux.HandleFunc("GET "+Prefix+"whatif/{kind}/{namespace}/{name}", n.serveWhatIf)
	mux.HandleFunc("GET "+Prefix+"queue", n.serveQueue)
	mux.HandleFunc("GET "+Prefix+"queue/watch", n.serveMoves)
	mux.HandleFunc("GET "+Prefix+"gangs", n.serveGangs)
	mux.HandleFunc("GET "+Prefix+"timing", n.serveTiming)
	mux.HandleFunc("GET "+Prefix+"timing/pod/{namespace}/{name}", n.serveTimingOfPod)
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		forbid(w, "this path shows all namespaces: you need get on the nonResourceURL "+Prefix+"*")
	})
	mux.ServeHTTP(w, r)
}

// allowed reports whether the identity may use a verb on pods. If not, it has answered the request.
func (n narrow) allowed(w http.ResponseWriter, r *http.Request, verb, namespace, name string) bool {
	ok, denied, err := n.may(r.Context(), verb, namespace, name)
	switch {
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			"the API server did not say whether you may: "+err.Error())
	case !ok:
		forbid(w, denied)
	}
	return ok && err == nil
}

func forbid(w http.ResponseWriter, message string) {
	refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, message)
}

// ask runs a question in its turn and reports whether it has run. If not, ask has answered the request.
func (n narrow) ask(w http.ResponseWriter, r *http.Request, question func()) bool {
	err := n.v.narrow.ask(r.Context(), question)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, err.Error())
	}
	return err == nil
}

func (n narrow) servePod(w http.ResponseWriter, r *http.Request) {
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	if !n.allowed(w, r, "get", namespace, name) {
		return
	}
	var report record.PodReport
	var found bool
	var err error
	if n.ask(w, r, func() { report, found, err = n.v.Pod(r.Context(), namespace, name) }) {
		answer(w, redactor{namespace}.pod(report), found, err, missing("pod", namespace, name))
	}
}

// serveGang needs get on all pods of the namespace: the answer names the pods of the gang.
func (n narrow) serveGang(w http.ResponseWriter, r *http.Request) {
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	if !n.allowed(w, r, "get", namespace, "") {
		return
	}
	var report record.GangReport
	var found bool
	var err error
	if n.ask(w, r, func() { report, found, err = n.v.Gang(r.Context(), namespace, name) }) {
		answer(w, redactor{namespace}.gang(report), found, err, missing("gang", namespace, name))
	}
}

// serveWhatIf refuses conditions on objects of other namespaces: their effect would show whether these exist. It needs
// get on all pods of the namespace, because conditions can name each of them.
func (n narrow) serveWhatIf(w http.ResponseWriter, r *http.Request) {
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	if !n.allowed(w, r, "get", namespace, "") {
		return
	}
	n.ask(w, r, func() {
		answerWhatIf(w, r, func(gang bool, conditions []string) (report record.WhatIf, unanswered, err error) {
			var other string
			err = n.v.asker.Ask(r.Context(), func(e Explainer) { other = e.OtherNamespace(namespace, conditions) })
			if err != nil {
				return report, nil, err
			}
			if other != "" {
				return report, &record.Refusal{Forbidden: true, Message: "you may see namespace " + namespace +
					" alone, and a condition is about another one"}, nil
			}
			report, unanswered, err = n.v.WhatIf(r.Context(), gang, namespace, name, conditions)
			return redactor{namespace}.whatIf(report), redactor{namespace}.refusal(unanswered), err
		})
	})
}

// namespaceOf returns the namespace that a request about a subject names, or answers the request itself.
func namespaceOf(w http.ResponseWriter, r *http.Request, subject string) string {
	namespace := r.FormValue("namespace")
	if namespace == "" {
		forbid(w, "you may not see "+subject+" of all namespaces; name one with -n (namespace=NAME in the URL)")
	}
	return namespace
}

func (n narrow) serveQueue(w http.ResponseWriter, r *http.Request) {
	namespace := namespaceOf(w, r, "the queue")
	if namespace == "" || !n.allowed(w, r, "list", namespace, "") {
		return
	}
	var report record.QueueReport
	var err error
	if n.ask(w, r, func() { report, err = n.v.Queue(r.Context()) }) {
		answer(w, redactor{namespace}.queue(report), true, err, "")
	}
}

func (n narrow) serveGangs(w http.ResponseWriter, r *http.Request) {
	namespace := namespaceOf(w, r, "the gangs")
	if namespace == "" || !n.allowed(w, r, "list", namespace, "") {
		return
	}
	var list record.GangList
	var err error
	if n.ask(w, r, func() { list, err = n.v.Gangs(r.Context()) }) {
		answer(w, redactor{namespace}.gangs(list), true, err, "")
	}
}

// serveMoves streams the moves of one namespace. The right is checked again while the stream is open.
func (n narrow) serveMoves(w http.ResponseWriter, r *http.Request) {
	namespace := namespaceOf(w, r, "the queue")
	if namespace == "" || !n.allowed(w, r, "watch", namespace, "") {
		return
	}
	select {
	case n.v.narrow.watches <- struct{}{}:
		defer func() { <-n.v.narrow.watches }()
	default:
		refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many streams of moves are open")
		return
	}
	red := redactor{namespace}
	n.v.streamMoves(w, r, reader{
		line: func(l MoveLine) (MoveLine, bool) {
			if l.Move == nil {
				return l, true
			}
			if !red.sees(*l.Move) {
				return l, false
			}
			move := red.move(*l.Move)
			l.Move = &move
			return l, true
		},
		still: func() bool {
			ok, _, err := n.may(r.Context(), "watch", namespace, "")
			return ok || err != nil // a failure of the API server is no denial
		},
	})
}

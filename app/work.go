// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// workPath is where a scheduler serves its record.WorkReport. It is off with enableProfiling: false.
const workPath = "/debug/kumiki/work"

// maxWorkSeconds bounds how long all Steps are measured for one request, and maxExactSeconds how long the boundaries of
// plugins are, which costs more: a minute, and what a recording measures before and after it.
const (
	maxWorkSeconds  = 600
	maxExactSeconds = 70
)

// handlers returns what the scheduler serves besides health, metrics and the like: path -> handler.
func (s *Scheduler) handlers() map[string]http.Handler {
	handlers := map[string]http.Handler{}
	if s.opts.Handlers != nil {
		maps.Copy(handlers, s.opts.Handlers(s))
	}
	if s.opts.Config.Profiling {
		handlers[workPath] = http.HandlerFunc(s.serveWork)
	}
	return handlers
}

// serveWork answers with what the scheduling core does in the next ?seconds, or did since the start. With ?exact=true
// the CPU time of plugins is measured at each boundary between them.
func (s *Scheduler) serveWork(w http.ResponseWriter, r *http.Request) {
	exact, most := false, maxWorkSeconds
	switch text := r.FormValue("exact"); text {
	case "", "false":
	case "true":
		exact, most = true, maxExactSeconds
	default:
		http.Error(w, fmt.Sprintf("exact must be true or false, got %q", text), http.StatusBadRequest)
		return
	}
	seconds := 0
	if text := r.FormValue("seconds"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > most {
			http.Error(w, fmt.Sprintf("seconds must be a number from 0 to %d, got %q", most, text),
				http.StatusBadRequest)
			return
		}
		seconds = n
	}
	report, err := s.inner.Loop.Work(r.Context(), time.Duration(seconds)*time.Second, exact)
	if err != nil {
		http.Error(w, "the scheduler does not answer: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(report) // an error here means that the reader went away
}

// SPDX-License-Identifier: Apache-2.0

package app

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// releases say what API servers serve, by release: the part of upstream's discovery documents that a scheduler could
// ask for. Each file names where it is from.
//
//go:embed testdata/discovery
var releases embed.FS

type discovery struct {
	Release, Source string
	Served          []struct {
		Group, Version string
		Resources      []struct {
			Resource, Kind string
			Namespaced     bool
			Subresources   []string
		}
	}
}

// preview reports whether a version of an API is off unless it is asked for (upstream: pkg/controlplane/instance.go,
// DefaultAPIResourceConfigSource).
func preview(version string) bool {
	return strings.Contains(version, "alpha") || strings.Contains(version, "beta")
}

// object is an API object as JSON has it.
type object = map[string]any

// collection is all objects of one resource.
type collection struct {
	apiVersion, kind string
	subresources     []string
	objects          map[string]object // namespace/name -> object
	history          []change
}

// change is one event of a watch.
type change struct {
	version int
	what    string // as the API names it
	object  object
}

// apiServer answers as an API server of one release does, for the resources of its discovery document and no others.
type apiServer struct {
	*httptest.Server
	mu          sync.Mutex
	collections map[string]*collection // path without namespace -> objects
	forbidden   map[string]bool        // path without namespace -> reading is forbidden
	streams     bool                   // a watch may begin with a list, which API servers can be configured not to do
	version     int
	changed     chan struct{}   // closed and made anew with each change
	unknown     map[string]bool // path -> was asked for, and is not served
	ended       chan struct{}   // closed with the test
}

func newAPIServer(t *testing.T) *apiServer {
	a := &apiServer{collections: map[string]*collection{}, forbidden: map[string]bool{}, changed: make(chan struct{}),
		unknown: map[string]bool{}, ended: make(chan struct{}), streams: true}
	a.Server = httptest.NewServer(a)
	t.Cleanup(func() {
		close(a.ended)
		a.Close()
	})
	return a
}

// serve makes the API server one of a release, with previews or without. What is stored stays, as it does in an
// upgrade.
func (a *apiServer) serve(t *testing.T, release string, previews bool) {
	t.Helper()
	text, err := releases.ReadFile("testdata/discovery/" + release + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var d discovery
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.collections
	a.collections = map[string]*collection{}
	for _, v := range d.Served {
		if preview(v.Version) && !previews {
			continue
		}
		root, apiVersion := "/apis/"+v.Group+"/"+v.Version, v.Group+"/"+v.Version
		if v.Group == "" {
			root, apiVersion = "/api/"+v.Version, v.Version
		}
		for _, r := range v.Resources {
			path := root + "/" + r.Resource
			a.collections[path] = was[path]
			if a.collections[path] == nil {
				a.collections[path] = &collection{apiVersion: apiVersion, kind: r.Kind, subresources: r.Subresources,
					objects: map[string]object{}}
			}
		}
	}
	a.tellAll()
}

// define makes a kind one that is served, with a status of its own.
func (a *apiServer) define(path, kind string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	group := strings.Split(strings.TrimPrefix(path, "/apis/"), "/")
	a.collections[path] = &collection{apiVersion: group[0] + "/" + group[1], kind: kind,
		subresources: []string{"status"}, objects: map[string]object{}}
	a.tellAll()
}

// withdraw makes a resource one that is not served.
func (a *apiServer) withdraw(paths ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, path := range paths {
		delete(a.collections, path)
	}
	a.tellAll()
}

// forbid makes reading of resources forbidden; without paths, reading of everything is allowed.
func (a *apiServer) forbid(paths ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forbidden = map[string]bool{}
	for _, path := range paths {
		a.forbidden[path] = true
	}
	a.tellAll()
}

func (a *apiServer) tellAll() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// served lists the paths of what is served, sorted.
func (a *apiServer) served() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.collections))
}

// put stores an object, in YAML, under a path without namespace.
func (a *apiServer) put(t *testing.T, path, text string) {
	t.Helper()
	obj := object{}
	if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
		t.Fatal(err)
	}
	meta := obj["metadata"].(object)
	if meta["uid"] == nil {
		meta["uid"] = "uid-of-" + meta["name"].(string)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store(a.collections[path], obj)
}

func keyOf(obj object) string {
	meta := obj["metadata"].(object)
	space, _ := meta["namespace"].(string)
	return space + "/" + meta["name"].(string)
}

func (a *apiServer) store(c *collection, obj object) {
	a.version++
	obj["apiVersion"], obj["kind"] = c.apiVersion, c.kind
	obj["metadata"].(object)["resourceVersion"] = strconv.Itoa(a.version)
	what := "ADDED"
	if c.objects[keyOf(obj)] != nil {
		what = "MODIFIED"
	}
	c.objects[keyOf(obj)] = obj
	c.history = append(c.history, change{a.version, what, obj})
	a.tellAll()
}

// nodeOf is where a pod is bound to; empty while it is not.
func (a *apiServer) nodeOf(pod string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	node, _ := a.collections["/api/v1/pods"].objects["default/"+pod]["spec"].(object)["nodeName"].(string)
	return node
}

// split takes a path apart: the collection's path without namespace, the key of the object, and the subresource.
func split(path string) (resource, key, sub string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	head := 3 // apis, group, version
	if parts[0] == "api" {
		head = 2
	}
	if len(parts) <= head {
		return path, "", ""
	}
	root, rest, space := parts[:head], parts[head:], ""
	if rest[0] == "namespaces" && len(rest) > 2 {
		space, rest = rest[1], rest[2:]
	}
	resource = "/" + strings.Join(root, "/") + "/" + rest[0]
	if len(rest) > 1 {
		key = space + "/" + rest[1]
	}
	if len(rest) > 2 {
		sub = rest[2]
	}
	return resource, key, sub
}

// ServeHTTP answers like an API server: with text for a path that is not served, with a Status for everything else that
// fails.
func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, key, sub := split(r.URL.Path)
	if strings.Count(r.URL.Path, "/") == 3 && strings.HasPrefix(r.URL.Path, "/apis/") {
		a.discover(w, r.URL.Path)
		return
	}
	a.mu.Lock()
	c, forbidden := a.collections[path], a.forbidden[path]
	if c == nil || sub != "" && !slices.Contains(c.subresources, sub) {
		a.unknown[r.URL.Path] = true
		a.mu.Unlock()
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	a.mu.Unlock()
	switch {
	case forbidden:
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	case r.Method == http.MethodGet && key == "" && r.URL.Query().Get("watch") != "":
		a.watch(w, r, path, c)
	case r.Method == http.MethodGet && key == "":
		a.list(w, c)
	case r.Method == http.MethodPost || r.Method == http.MethodPatch:
		a.write(w, r, c, key, sub)
	default:
		refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed)
	}
}

// discover tells what a version of a group has. To ask for one that is not served is how to find that out.
func (a *apiServer) discover(w http.ResponseWriter, root string) {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: strings.TrimPrefix(root, "/apis/")}
	for _, path := range a.served() {
		if resource, in := strings.CutPrefix(path, root+"/"); in {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource})
		}
	}
	if len(list.APIResources) == 0 {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	answer(w, http.StatusOK, list)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	answer(w, code, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status: metav1.StatusFailure,
		Reason: reason, Code: int32(code), Message: string(reason)})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func (a *apiServer) list(w http.ResponseWriter, c *collection) {
	a.mu.Lock()
	defer a.mu.Unlock()
	items := []object{}
	for _, key := range slices.Sorted(maps.Keys(c.objects)) {
		items = append(items, c.objects[key])
	}
	answer(w, http.StatusOK, object{"apiVersion": c.apiVersion, "kind": c.kind + "List", "items": items,
		"metadata": object{"resourceVersion": strconv.Itoa(a.version)}})
}

// watch streams changes until the client goes, or the resource does.
func (a *apiServer) watch(w http.ResponseWriter, r *http.Request, path string, c *collection) {
	q := r.URL.Query()
	initial := q.Get("sendInitialEvents") == "true"
	if initial && !a.streams {
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		return
	}
	seen, _ := strconv.Atoi(q.Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	send := func(what string, obj object) {
		if err := json.NewEncoder(w).Encode(object{"type": what, "object": obj}); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	for {
		a.mu.Lock()
		gone, changed := a.collections[path] != c || a.forbidden[path], a.changed
		if initial {
			for _, key := range slices.Sorted(maps.Keys(c.objects)) {
				send("ADDED", c.objects[key])
			}
			send("BOOKMARK", object{"apiVersion": c.apiVersion, "kind": c.kind, "metadata": object{
				"resourceVersion": strconv.Itoa(a.version),
				"annotations":     object{metav1.InitialEventsAnnotationKey: "true"}}})
			seen, initial = a.version, false
		}
		for _, ch := range c.history {
			if ch.version > seen {
				send(ch.what, ch.object)
				seen = ch.version
			}
		}
		a.mu.Unlock()
		if gone {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-a.ended:
			return
		}
	}
}

// write carries out a bind; anything else is taken and forgotten.
func (a *apiServer) write(w http.ResponseWriter, r *http.Request, c *collection, key, sub string) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	body := object{}
	if err := json.Unmarshal(text, &body); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	if sub != "binding" {
		answer(w, http.StatusOK, body)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	pod, spec := maps.Clone(c.objects[key]), object{}
	if pod == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	maps.Copy(spec, pod["spec"].(object))
	spec["nodeName"] = body["target"].(object)["name"]
	pod["spec"], pod["metadata"] = spec, maps.Clone(pod["metadata"].(object))
	a.store(c, pod)
	answer(w, http.StatusCreated, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status: metav1.StatusSuccess})
}

// config is how a client reaches the API server: in JSON, which is what it speaks.
func (a *apiServer) config() *rest.Config {
	return &rest.Config{Host: a.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json",
		AcceptContentTypes: "application/json"}}
}

func (a *apiServer) node(t *testing.T, name string) {
	t.Helper()
	a.put(t, "/api/v1/nodes", fmt.Sprintf("{metadata: {name: %s}, status: {allocatable: {cpu: '4', memory: 8Gi, "+
		"pods: '110'}}}", name))
}

// pod stores a pod that asks for a core; more are further fields of its spec.
func (a *apiServer) pod(t *testing.T, name, more string) {
	t.Helper()
	a.put(t, "/api/v1/pods", fmt.Sprintf("{metadata: {namespace: default, name: %s}, spec: {schedulerName: "+
		"default-scheduler, %s"+
		"containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}, status: {phase: Pending}}", name, more))
}

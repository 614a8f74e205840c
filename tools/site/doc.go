// SPDX-License-Identifier: Apache-2.0

// Command site writes the documentation as static HTML that opens offline, from a file system too.
//
//	site --root . --out out/site
//
// It starts at README.md and docs/README.md and follows their links. A Markdown page becomes a page of the same path,
// another text file a page that shows it, a directory without README.md a list of its files; images are copied. The
// navigation is the list of docs/README.md. Search runs in the browser over an index that is written here. No page
// loads anything from a network.
//
// It ends with an error, and writes nothing, if a link leads to a file or an anchor that does not exist, or if an image
// is on another host.
package main

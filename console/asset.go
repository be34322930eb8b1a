package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed static
var static embed.FS

// asset is an embedded file.
type asset struct {
	kind string
	body []byte
	hash string
}

// assets returns the embedded files by name. They are read on first use: most commands serve no
// pages.
var assets = sync.OnceValue(readAssets)

func readAssets() map[string]asset {
	kinds := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
	all := map[string]asset{}
	files, err := static.ReadDir("static")
	for _, f := range files {
		var body []byte
		if body, err = static.ReadFile("static/" + f.Name()); err != nil {
			break
		}
		sum := sha256.Sum256(body)
		all[f.Name()] = asset{kinds[path.Ext(f.Name())], body, hex.EncodeToString(sum[:6])}
	}
	if err != nil {
		panic(err) // the files are part of the program
	}
	return all
}

// assetPath returns the path of an asset. It changes with the contents, so that browsers keep an
// asset for good.
func assetPath(name string) string { return below + "asset/" + assets()[name].hash + "/" + name }

// serveAsset answers with an asset. A path of an older version has the present contents, and is not
// kept.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	a, ok := assets()[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	if r.PathValue("hash") == a.hash {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		w.Header().Set("Cache-Control", "no-store")
	}
	_, _ = w.Write(a.body)
}

// isPage reports whether a path is one of the pages'.
func isPage(path string) bool { return path == root || strings.HasPrefix(path, below) }

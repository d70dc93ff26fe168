#include "gateway/config/yaml.h"

#include "base/utf8.h"

#include <libfyaml.h>
#include <stdint.h>
#include <string.h>

enum {
    BYTES_MAX = 131072,
    MARKS_MAX = 16384, /* signs that could be keys: libfyaml compares each key with all others */
    DEPTH_MAX = 8,
    NODES_MAX = 16384,
    MESSAGE_SHOWN = 200,
};

struct loader {
    struct config_memory *memory;
    struct yaml_fault *fault;
    size_t nodes;
};

static int fault_at(struct yaml_fault *fault, unsigned line, unsigned column, const char *what)
{
    fault->line = line;
    fault->column = column;
    return error_set(&fault->error, ERROR_INVALID, 0, "%s", what);
}

/* Before libfyaml sees it. */
static int check_bytes(const char *text, size_t length, struct yaml_fault *fault)
{
    unsigned line = 1;
    unsigned column = 1;
    size_t marks = 0;

    if (length > BYTES_MAX)
        return fault_at(fault, 1, 1, "the file is larger than 128 KiB");
    for (size_t at = 0; at < length; column++) {
        size_t sequence = utf8_sequence((const uint8_t *)text + at, length - at);
        char letter = text[at];
        if (sequence == 0)
            return fault_at(fault, line, column, "this byte is not UTF-8");
        if (((unsigned char)letter < ' ' && letter != '\n' && letter != '\t' && letter != '\r') || letter == 0x7f)
            return fault_at(fault, line, column, "control characters can't be in it");
        marks += letter == ':' || letter == ',' || letter == '?' || letter == '-' ? 1 : 0;
        if (letter == '\n') {
            line++;
            column = 0;
        }
        at += sequence;
    }
    return marks > MARKS_MAX ? fault_at(fault, 1, 1, "there are too many keys in it") : 0;
}

static void locate(struct fy_node *node, struct yaml_node *out)
{
    struct fy_token *token = fy_node_get_scalar_token(node);
    const struct fy_mark *mark = token != NULL ? fy_token_start_mark(token) : NULL;

    if (mark != NULL && mark->line >= 0 && mark->column >= 0) {
        out->line = (unsigned)mark->line + 1;
        out->column = (unsigned)mark->column + 1;
    }
}

static int take_text(struct loader *loader, struct fy_node *node, const struct yaml_node *at, const char **ret_text)
{
    size_t length = 0;
    const char *text = fy_node_get_scalar(node, &length);

    if (text == NULL) {
        text = "";
        length = 0;
    }
    if (memchr(text, '\0', length) != NULL)
        return fault_at(loader->fault, at->line, at->column, "a NUL can't be in it");
    /* An escape may have made what a byte could not be. */
    for (size_t i = 0; i < length;) {
        size_t sequence = utf8_sequence((const uint8_t *)text + i, length - i);
        if (sequence == 0)
            return fault_at(loader->fault, at->line, at->column, "this text is not UTF-8");
        i += sequence;
    }
    *ret_text = config_memory_text(loader->memory, text, length);
    return *ret_text == NULL ? -ENOMEM : 0;
}

static int check_node(struct loader *loader, struct fy_node *node, const struct yaml_node *out)
{
    size_t length = 0;

    if (fy_node_is_alias(node))
        return fault_at(loader->fault, out->line, out->column, "aliases (*name) can't be used here");
    if (fy_node_get_anchor(node) != NULL)
        return fault_at(loader->fault, out->line, out->column, "anchors (&name) can't be used here");
    if (fy_node_get_tag(node, &length) != NULL)
        return fault_at(loader->fault, out->line, out->column, "tags (!name) can't be used here");
    if (++loader->nodes > NODES_MAX)
        return fault_at(loader->fault, out->line, out->column, "there is too much in it");
    return 0;
}

static int take_node(struct loader *loader, struct fy_node *node, unsigned depth, struct yaml_node *out);

static int take_list(struct loader *loader, struct fy_node *node, unsigned depth, struct yaml_node *out)
{
    void *position = NULL;
    struct fy_node *child;
    int r = 0;

    out->kind = YAML_LIST;
    out->children = config_memory_take(loader->memory, (size_t)(fy_node_sequence_item_count(node) + 1) * sizeof *out);
    if (out->children == NULL)
        return -ENOMEM;
    while (r == 0 && (child = fy_node_sequence_iterate(node, &position)) != NULL) {
        struct yaml_node *to = &out->children[out->count++];
        to->line = out->line;
        to->column = out->column;
        r = take_node(loader, child, depth + 1, to);
    }
    return r;
}

static int take_pair(struct loader *loader, struct fy_node_pair *pair, unsigned depth, struct yaml_node *to)
{
    struct fy_node *key = fy_node_pair_key(pair);

    if (key == NULL || !fy_node_is_scalar(key))
        return fault_at(loader->fault, to->line, to->column, "a key must be a text");
    locate(key, to);
    int r = check_node(loader, key, to);
    if (r == 0)
        r = take_text(loader, key, to, &to->key);
    return r < 0 ? r : take_node(loader, fy_node_pair_value(pair), depth + 1, to);
}

static int take_map(struct loader *loader, struct fy_node *node, unsigned depth, struct yaml_node *out)
{
    void *position = NULL;
    struct fy_node_pair *pair;
    int r = 0;

    out->kind = YAML_MAP;
    out->children = config_memory_take(loader->memory, (size_t)(fy_node_mapping_item_count(node) + 1) * sizeof *out);
    if (out->children == NULL)
        return -ENOMEM;
    while (r == 0 && (pair = fy_node_mapping_iterate(node, &position)) != NULL) {
        struct yaml_node *to = &out->children[out->count++];
        to->line = out->line;
        to->column = out->column;
        r = take_pair(loader, pair, depth, to);
    }
    return r;
}

static int take_node(struct loader *loader, struct fy_node *node, unsigned depth, struct yaml_node *out)
{
    if (depth > DEPTH_MAX)
        return fault_at(loader->fault, out->line, out->column, "this is nested too deep");
    out->is_empty = node == NULL;
    out->text = "";
    if (node == NULL)
        return 0;
    /* In a map, where a problem is shown is its key. */
    if (out->key == NULL)
        locate(node, out);
    int r = check_node(loader, node, out);
    if (r < 0)
        return r;
    if (fy_node_is_sequence(node))
        return take_list(loader, node, depth, out);
    if (fy_node_is_mapping(node))
        return take_map(loader, node, depth, out);
    r = take_text(loader, node, out, &out->text);
    out->is_empty = r == 0 && out->text[0] == '\0' && fy_node_get_style(node) == FYNS_PLAIN;
    return r;
}

static int parse_failed(struct fy_diag *diag, struct yaml_fault *fault)
{
    void *position = NULL;
    const struct fy_diag_error *first = fy_diag_errors_iterate(diag, &position);

    if (first == NULL)
        return fault_at(fault, 1, 1, "this is no YAML");
    fault->line = first->line > 0 ? (unsigned)first->line : 1;
    fault->column = first->column > 0 ? (unsigned)first->column : 1;
    return error_set(&fault->error, ERROR_INVALID, 0, "%.*s", MESSAGE_SHOWN, first->msg);
}

static int load(struct loader *loader, struct fy_parser *parser, struct fy_diag *diag, struct yaml_node **ret_root)
{
    struct fy_document *document = fy_parse_load_document(parser);
    struct yaml_node *root = NULL;
    int r = 0;

    if (document == NULL)
        return fy_diag_got_error(diag) ? parse_failed(diag, loader->fault) : 0;
    if (fy_document_root(document) != NULL) {
        root = config_memory_take(loader->memory, sizeof *root);
        if (root != NULL)
            root->line = root->column = 1;
        r = root == NULL ? -ENOMEM : take_node(loader, fy_document_root(document), 0, root);
    }
    fy_document_destroy(document);
    if (r < 0)
        return r;
    document = fy_parse_load_document(parser);
    if (document != NULL) {
        fy_document_destroy(document);
        return fault_at(loader->fault, 1, 1, "there is more than one document in it (---)");
    }
    if (fy_diag_got_error(diag))
        return parse_failed(diag, loader->fault);
    *ret_root = root;
    return 0;
}

int yaml_parse(const char *text, size_t length, struct config_memory *memory, struct yaml_node **ret_root,
               struct yaml_fault *fault)
{
    static const struct fy_diag_cfg quiet = {.level = FYET_ERROR, .module_mask = ~0U};
    struct loader loader = {.memory = memory, .fault = fault};
    struct yaml_node *root = NULL;
    int r = check_bytes(text, length, fault);

    if (r < 0)
        return r;
    struct fy_diag *diag = fy_diag_create(&quiet);
    struct fy_parse_cfg cfg = {.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG, .diag = diag};
    if (diag != NULL)
        fy_diag_set_collect_errors(diag, true);
    struct fy_parser *parser = diag != NULL ? fy_parser_create(&cfg) : NULL;
    r = parser == NULL || fy_parser_set_string(parser, text, length) < 0 ? -ENOMEM : load(&loader, parser, diag, &root);
    fy_parser_destroy(parser);
    fy_diag_destroy(diag);
    if (r == 0)
        *ret_root = root;
    return r;
}

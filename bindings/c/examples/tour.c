/* The C library of nearsift from end to end. The tests compile it as C and as C++ and compare what it prints.
 *
 *     cc tour.c $(pkg-config --cflags --libs nearsift) -o tour && ./tour FOLDER
 *
 * FOLDER is where it makes a durable index; it must be empty or not exist.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearsift.h"

static const char *const TEXTS[] = {
    "今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。",
    "本报讯：昨天的大雨使两条地铁线路停运了三个小时。",
    "今天下午，市图书馆举办了一场儿童绘本阅读活动。",
    "今天下午,市圖書館舉辦了一場面向兒童的繪本閱讀活動",
};
enum { COUNT = sizeof TEXTS / sizeof TEXTS[0] };

/* Ends the program with the library's message, unless a call has done what it was asked. */
static void check(nearsift_status status)
{
    if (status != NEARSIFT_STATUS_OK) {
        fprintf(stderr, "status %d: %s\n", (int)status, nearsift_last_error());
        exit(1);
    }
}

static void fingerprints(void)
{
    nearsift_recipe *recipe = NULL;
    check(nearsift_recipe_parse("simhash64", strlen("simhash64"), &recipe));
    nearsift_string written;
    check(nearsift_recipe_written(recipe, &written));
    printf("recipe      %s\n", written.data);
    check(nearsift_string_free(&written));

    nearsift_fingerprint prints[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        nearsift_string hex;
        check(nearsift_fingerprint_text(recipe, TEXTS[i], strlen(TEXTS[i]), &prints[i], NULL));
        check(nearsift_fingerprint_write(&prints[i], &hex));
        printf("fingerprint %s\n", hex.data);
        check(nearsift_string_free(&hex));
    }
    uint32_t distance;
    check(nearsift_fingerprint_distance(&prints[0], &prints[2], &distance));
    printf("distance    %" PRIu32 "\n", distance);

    nearsift_memory_index *index = NULL;
    check(nearsift_memory_index_new(64, 16, COUNT, &index));
    for (size_t i = 0; i < COUNT; i++) {
        check(nearsift_memory_index_insert(index, &prints[i], i));
    }
    nearsift_neighbour neighbours[COUNT];
    size_t found;
    check(nearsift_memory_index_query(index, &prints[0], 16, neighbours, COUNT, &found));
    for (size_t i = 0; i < found; i++) {
        printf("neighbour   %" PRIu64 " at %" PRIu32 "\n", neighbours[i].id, neighbours[i].distance);
    }
    check(nearsift_memory_index_free(index));

    /* A text with too little to go by has no fingerprint, which is no fault. */
    if (nearsift_fingerprint_text(recipe, "ok", 2, &prints[0], NULL) == NEARSIFT_STATUS_NO_FINGERPRINT) {
        printf("none        %s\n", nearsift_last_error());
    }
    check(nearsift_recipe_free(recipe));
}

static void decision(void)
{
    nearsift_comparison found;
    check(nearsift_compare(TEXTS[0], strlen(TEXTS[0]), TEXTS[2], strlen(TEXTS[2]), NULL, &found));
    printf("compare     %s, score %.4f (cosine %.4f, alignment %.4f, Jaccard %.4f, containment %.4f)\n",
           found.is_near ? "near" : "not near", found.score, found.cosine, found.alignment, found.jaccard,
           found.containment);
}

static void deduplicate(void)
{
    nearsift_str texts[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        texts[i].data = TEXTS[i];
        texts[i].length = strlen(TEXTS[i]);
    }
    nearsift_deduplicated *found = NULL;
    check(nearsift_dedup(texts, COUNT, NULL, NEARSIFT_KEEP_FIRST, 1, &found));
    const nearsift_dedup_row *rows;
    size_t count;
    check(nearsift_deduplicated_rows(found, &rows, &count));
    static const char *const REASONS[] = {"stays", "same text", "near"};
    for (size_t i = 0; i < count; i++) {
        printf("text %zu      group %" PRIu32 " of %" PRIu32 ", %s, for it %" PRIu32 ", score %.4f\n", i, rows[i].group,
               rows[i].group_size, REASONS[rows[i].reason], rows[i].representative, rows[i].score);
    }
    check(nearsift_deduplicated_free(found));
}

static void durable(const char *folder)
{
    nearsift_index *index = NULL;
    check(nearsift_index_create(folder, strlen(folder), NULL, &index));
    for (size_t i = 0; i < COUNT; i++) {
        char id[16];
        snprintf(id, sizeof id, "text-%zu", i);
        nearsift_outcome outcome;
        nearsift_matches *matches = NULL;
        check(nearsift_index_check_and_insert(index, id, strlen(id), TEXTS[i], strlen(TEXTS[i]), &outcome, &matches));
        if (outcome == NEARSIFT_OUTCOME_NEAR) {
            nearsift_match near;
            check(nearsift_matches_get(matches, 0, &near));
            printf("index       %s is near %s, score %.4f\n", id, near.id, near.score);
        } else {
            printf("index       %s is new\n", id);
        }
        check(nearsift_matches_free(matches));
    }
    check(nearsift_index_close(index));

    check(nearsift_index_open(folder, strlen(folder), NULL, &index));
    nearsift_matches *matches = NULL;
    check(nearsift_index_query(index, TEXTS[2], strlen(TEXTS[2]), 0, &matches));
    size_t count;
    check(nearsift_matches_count(matches, &count, NULL));
    printf("query       %zu found\n", count);
    check(nearsift_matches_free(matches));
    nearsift_outcome outcome;
    check(nearsift_index_delete(index, "text-1", strlen("text-1"), &outcome));
    nearsift_index_stats stats;
    check(nearsift_index_get_stats(index, &stats));
    printf("documents   %" PRIu64 "\n", stats.documents);
    check(nearsift_index_close(index));
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: tour FOLDER\n");
        return 2;
    }
    printf("nearsift    %s\n", nearsift_version());
    fingerprints();
    decision();
    deduplicate();
    durable(argv[1]);
    return 0;
}

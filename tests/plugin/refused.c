/* tests/plugin/refused.c: plugins that must be refused: FLAW says how they are broken. */
#include <ortc/op.h>

#if FLAW != 5
static ortc_status init(const ortc_host *host)
{
    (void)host;
    return FLAW == 4 ? ORTC_INTERNAL : ORTC_OK;
}

ORTC_ENTRY const ortc_plugin_info *ortc_plugin(void);
ORTC_ENTRY const ortc_plugin_info *ortc_plugin(void)
{
    static const ortc_plugin_info info = {FLAW == 3 ? 8 : ORTC_SIZED(ortc_plugin_info),
                                          FLAW == 1   ? ORTC_ABI - 1
                                          : FLAW == 2 ? ORTC_ABI + 1
                                                      : ORTC_ABI,
                                          FLAW == 6 ? 77 : ORTC_SANITIZER,
                                          0,
                                          "refused",
                                          "1.0",
                                          init};
    return &info;
}
#else
ORTC_EXPORT int not_a_plugin;
int not_a_plugin = ORTC_ABI;
#endif
